#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "ctl/why/pod/pod_scheduling.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;

constexpr char kMessage[] =
    "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {a: b, c}, 2 node(s) "
    "didn't match Pod's "
    "node affinity/selector. preemption: 0/4 nodes are available: 4 Preemption is not helpful for "
    "scheduling.";

TEST(PodScheduling, TakesTheSchedulersMessageApart) {
  EXPECT_EQ(NodesOf(kMessage), 4);
  EXPECT_THAT(
      SchedulingReasons(kMessage),
      ElementsAre("1 Insufficient cpu", "1 node(s) had untolerated taint {a: b, c}",
                  "2 node(s) didn't match Pod's node affinity/selector",
                  "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."));
  EXPECT_THAT(SchedulingReasons("0/1 nodes are available: 1 Too many pods."), ElementsAre("1 Too many pods"));
  EXPECT_THAT(SchedulingReasons("no nodes available to schedule pods"),
              ElementsAre("no nodes available to schedule pods"));
  EXPECT_EQ(NodesOf("no nodes available to schedule pods"), -1);
  EXPECT_EQ(NodesOf("a/b nodes are available: "), -1);
}

TEST(PodScheduling, AdvisesByReason) {
  EXPECT_THAT(
      NextForScheduling("1 node(s) were unschedulable, 1 node(s) had untolerated taint {a: }"),
      ElementsAre("kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key",
                  "kubectl get nodes"));
  EXPECT_THAT(NextForScheduling("something new"), ElementsAre());
}

TEST(PodScheduling, TellsWhatEachNodeLacks) {
  const Problem problem = JudgeSchedulingAnswer(boost::json::parse(
      R"({"pod":"default/p","scheduler":"default-scheduler","queue":"unschedulable","rejectedBy":["NodeResourcesFit"],
          "nodes":[{"name":"n1","refusedBy":"NodeResourcesFit","reasons":["Insufficient cpu"],
                    "numbers":"cpu (milli): 2000 wanted, 500 of 1000 in use"}]})"));
  EXPECT_EQ(problem.reason, "Unschedulable");
  EXPECT_EQ(problem.message, "none of the 1 nodes takes the pod");
  EXPECT_THAT(
      problem.evidence,
      ElementsAre(
          "default-scheduler has the pod as unschedulable, last ruled out by NodeResourcesFit",
          "NODE   REFUSED BY         WHY",
          "n1     NodeResourcesFit   Insufficient cpu (cpu (milli): 2000 wanted, 500 of 1000 in use)"));
}

TEST(PodScheduling, TellsScores) {
  const Problem problem = JudgeSchedulingAnswer(boost::json::parse(
      R"({"pod":"default/p","scheduler":"s","queue":"active","rejectedBy":[],"nodes":[
          {"name":"n1","total":7,"scores":{"A":3,"B":4}},{"name":"n2","refusedBy":"F","reasons":["r"]}]})"));
  EXPECT_EQ(problem.reason, "SchedulingPending");
  EXPECT_THAT(problem.evidence,
              ElementsAre("s has the pod as active", "NODE   SCORE   A   B", "n1     7       3   4",
                          "NODE   REFUSED BY   WHY", "n2     F            r"));
}

TEST(PodScheduling, TellsWhatConcernsAllNodes) {
  const Problem refused = JudgeSchedulingAnswer(boost::json::parse(
      R"({"pod":"default/p","scheduler":"s","queue":"unschedulable","rejectedBy":[],
          "refused":{"plugin":"VolumeBinding","message":"persistentvolumeclaim \"c\" not found"}})"));
  EXPECT_EQ(refused.reason, "Unschedulable");
  EXPECT_EQ(refused.message, "VolumeBinding: persistentvolumeclaim \"c\" not found");
  EXPECT_EQ(
      JudgeSchedulingAnswer(boost::json::parse(R"({"scheduler":"s","queue":"active","nodes":[]})")).reason,
      "NoNodes");
}

}  // namespace
}  // namespace keelson::ctl
