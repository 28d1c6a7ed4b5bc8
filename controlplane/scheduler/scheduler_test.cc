// The whole scheduler against an API server in memory.
#include "controlplane/scheduler/testing/cluster.h"
#include "lib/api/proto/policy_v1.pb.h"

namespace keelson::scheduler {

namespace policyv1 = api::policy::v1;

namespace {

TEST_F(SchedulerTest, BindsPodsThatAreThereAndThatCome) {
  fake_->Put(MakeNode("n1"));
  fake_->Put(MakePod("early", "1"));
  Start();
  EXPECT_EQ(NodeOf("early"), "n1");
  Create(MakePod("late", "1"));
  EXPECT_EQ(NodeOf("late"), "n1");
}

TEST_F(SchedulerTest, ReportsAndRetriesWhenRoomAppears) {
  fake_->Put(MakeNode("n1", "1"));
  Start();
  Create(MakePod("big", "2"));
  EXPECT_EQ(
      WhyNot("big"),
      "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 "
      "Preemption is not helpful for scheduling.");
  fake_->Put(MakeNode("n2", "4"));
  EXPECT_EQ(NodeOf("big"), "n2");
}

TEST_F(SchedulerTest, RoomOfDeletedPodsIsUsedAgain) {
  fake_->Put(MakeNode("n1", "1"));
  Start();
  Create(MakePod("first", "800m"));
  EXPECT_EQ(NodeOf("first"), "n1");
  Create(MakePod("second", "800m"));
  EXPECT_EQ(
      WhyNot("second"),
      "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No "
      "preemption victims found for incoming pod.");
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "first", now));
  EXPECT_EQ(NodeOf("second"), "n1");
}

TEST_F(SchedulerTest, NeverOvercommitsUnderABurst) {
  for (int i = 0; i < 5; ++i) fake_->Put(MakeNode("n" + std::to_string(i), "2"));
  for (int i = 0; i < 25; ++i) fake_->Put(MakePod("p" + std::to_string(i), "500m"));
  Start();
  std::map<std::string, int> placed;
  int waiting = 0;
  for (int i = 0; i < 25; ++i) {
    const corev1::Pod pod = Await("p" + std::to_string(i), [](const corev1::Pod& p) {
      return !p.spec().node_name().empty() || k8s::FindCondition(p.status(), k8s::kPodScheduled);
    });
    pod.spec().node_name().empty() ? ++waiting : ++placed[pod.spec().node_name()];
  }
  EXPECT_EQ(waiting, 5);
  for (const auto& [node, count] : placed) EXPECT_EQ(count, 4) << node;
}

TEST_F(SchedulerTest, LeavesOthersPodsGatedPodsAndDyingPodsAlone) {
  fake_->Put(MakeNode("n1"));
  corev1::Pod foreign = MakePod("foreign"), gated = MakePod("gated"), dying = MakePod("dying");
  foreign.mutable_spec()->set_scheduler_name("other");
  gated.mutable_spec()->add_scheduling_gates()->set_name("wait");
  dying.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  for (const corev1::Pod& pod : {foreign, gated, dying}) fake_->Put(pod);
  Start();
  // When a pod that came later is bound, these would have been.
  Create(MakePod("normal"));
  EXPECT_EQ(NodeOf("normal"), "n1");
  for (const char* name : {"foreign", "gated", "dying"}) {
    EXPECT_EQ(api_.Get<corev1::Pod>("default", name)->spec().node_name(), "") << name;
  }
  Result<corev1::Pod> open = api_.Get<corev1::Pod>("default", "gated");
  ASSERT_TRUE(open);
  open->mutable_spec()->clear_scheduling_gates();
  ASSERT_TRUE(api_.Update(*open));
  EXPECT_EQ(NodeOf("gated"), "n1");
}

TEST_F(SchedulerTest, FailedBindingsAreTriedAgain) {
  fake_->Put(MakeNode("n1", "1"));
  auto refused = std::make_shared<std::atomic<int>>(0);  // outlives this function: so does the scheduler
  fake_->SetInterceptor(
      [refused](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.target.find("/binding") == std::string::npos || (*refused)++ > 0) return std::nullopt;
        return client::FakeApi::Refuse(Error(Code::kUnavailable, "not now"));
      });
  Start();
  Create(MakePod("p", "1"));
  EXPECT_EQ(NodeOf("p"), "n1");
  EXPECT_EQ(*refused, 2);
}

TEST_F(SchedulerTest, EvictsForMoreImportantPods) {
  fake_->Put(MakeNode("n1", "2"));
  corev1::Pod guarded = MakePod("guarded", "1"), plain = MakePod("plain", "1");
  (*guarded.mutable_metadata()->mutable_labels())["app"] = "db";
  for (corev1::Pod* pod : {&guarded, &plain}) {
    pod->mutable_spec()->set_node_name("n1");
    pod->mutable_spec()->set_termination_grace_period_seconds(0);
    fake_->Put(*pod);
  }
  policyv1::PodDisruptionBudget budget;
  budget.mutable_metadata()->set_name("db");
  budget.mutable_metadata()->set_namespace_("default");
  (*budget.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = "db";
  fake_->Put(budget);
  Start();
  corev1::Pod important = MakePod("important", "1");
  important.mutable_spec()->set_priority(10);
  Create(important);
  EXPECT_EQ(NodeOf("important"), "n1");
  EXPECT_TRUE(api_.Get<corev1::Pod>("default", "guarded"));
  EXPECT_FALSE(api_.Get<corev1::Pod>("default", "plain"));
}

TEST_F(SchedulerTest, ABudgetWithAnEmptySelectorIsOfAllPods) {
  fake_->Put(MakeNode("n1", "2"));
  corev1::Pod guarded = MakePod("guarded", "1"), other = MakePod("other", "1");
  other.mutable_metadata()->set_namespace_("elsewhere");
  other.mutable_spec()->set_priority(5);
  for (corev1::Pod* pod : {&guarded, &other}) {
    pod->mutable_metadata()->clear_labels();
    pod->mutable_spec()->set_node_name("n1");
    pod->mutable_spec()->set_termination_grace_period_seconds(0);
    fake_->Put(*pod);
  }
  policyv1::PodDisruptionBudget all, nothing;
  all.mutable_metadata()->set_name("all");
  all.mutable_metadata()->set_namespace_("default");
  all.mutable_spec()->mutable_selector();
  nothing.mutable_metadata()->set_name("nothing");
  nothing.mutable_metadata()->set_namespace_("elsewhere");
  for (const auto& budget : {all, nothing}) fake_->Put(budget);
  Start();
  corev1::Pod important = MakePod("important", "1");
  important.mutable_spec()->set_priority(10);
  Create(important);
  EXPECT_EQ(NodeOf("important"), "n1");
  EXPECT_TRUE(api_.Get<corev1::Pod>("default", "guarded"));
  EXPECT_FALSE(api_.Get<corev1::Pod>("elsewhere", "other")) << "more important, but nobody guards it";
}

// A victim that the informers have not seen go yet is no reason to evict another one.
TEST_F(SchedulerTest, EvictsNoMoreThanItMust) {
  constexpr int kNodes = 40, kPods = 20;
  for (int i = 0; i < kNodes; ++i) {
    const std::string node = "n" + std::to_string(i);
    fake_->Put(MakeNode(node, "2"));
    corev1::Pod lesser = MakePod("lesser-" + std::to_string(i), "2");
    lesser.mutable_spec()->set_node_name(node);
    lesser.mutable_spec()->set_termination_grace_period_seconds(0);
    fake_->Put(lesser);
  }
  Start();
  for (int i = 0; i < kPods; ++i) {
    corev1::Pod important = MakePod("important-" + std::to_string(i), "2");
    important.mutable_spec()->set_priority(10);
    Create(important);
  }
  for (int i = 0; i < kPods; ++i) EXPECT_NE(NodeOf("important-" + std::to_string(i)), "");
  const auto pods = api_.List<corev1::Pod>();
  ASSERT_TRUE(pods);
  EXPECT_EQ(pods->size(), static_cast<size_t>(kNodes));  // a lesser one for each important one
}

TEST_F(SchedulerTest, PromisesRoomWhileVictimsGo) {
  fake_->Put(MakeNode("n1", "2"));
  corev1::Pod slow = MakePod("slow", "2");
  slow.mutable_spec()->set_node_name("n1");  // with the default grace period: it is being deleted for long
  slow.mutable_metadata()->set_generation(3);
  fake_->Put(slow);
  Start();
  corev1::Pod important = MakePod("important", "2");
  important.mutable_spec()->set_priority(10);
  Create(important);
  const corev1::Pod promised =
      Await("important", [](const corev1::Pod& pod) { return !pod.status().nominated_node_name().empty(); });
  EXPECT_EQ(promised.status().nominated_node_name(), "n1");
  const corev1::Pod victim =
      Await("slow", [](const corev1::Pod& pod) { return pod.metadata().has_deletion_timestamp(); });
  const corev1::PodCondition* target = k8s::FindCondition(victim.status(), k8s::kDisruptionTarget);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->reason(), "PreemptionByScheduler");
  EXPECT_EQ(target->observed_generation(), 3);
  EXPECT_EQ(target->message(), "default-scheduler: preempting to accommodate a higher priority pod");
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "slow", now));
  EXPECT_EQ(NodeOf("important"), "n1");
}

TEST_F(SchedulerTest, TellsWhyAPodIsWhereItIs) {
  fake_->Put(MakeNode("n1", "1"));
  Listen();
  Start();
  Create(MakePod("small", "800m"));
  EXPECT_EQ(NodeOf("small"), "n1");
  Create(MakePod("big", "2"));
  WhyNot("big");
  corev1::Pod gated = MakePod("gated");
  gated.mutable_spec()->add_scheduling_gates()->set_name("wait");
  Create(gated);
  corev1::Pod foreign = MakePod("foreign");
  foreign.mutable_spec()->set_scheduler_name("other");
  Create(foreign);
  Create(MakePod("late", "100m"));  // pods that are bound later came after them
  EXPECT_EQ(NodeOf("late"), "n1");

  const json::value no_node = json::parse(R"({"pod":"default/big","scheduler":"default-scheduler",
      "queue":"unschedulable","rejectedBy":["NodeResourcesFit"],
      "nodes":[{"name":"n1","refusedBy":"NodeResourcesFit","reasons":["Insufficient cpu"],
                "numbers":"cpu (milli): 2000 wanted, 900 of 1000 in use"}]})");
  const json::value gates =
      json::parse(R"({"pod":"default/gated","scheduler":"default-scheduler","queue":"gated",
      "rejectedBy":[],
      "refused":{"plugin":"SchedulingGates","message":"waiting for scheduling gates: wait"}})");
  const json::value not_ours = json::parse(R"({"pod":"default/foreign","scheduler":"other",
      "refused":{"plugin":"","message":"no profile of this scheduler has that name"}})");
  EXPECT_EQ(WhyOnceBound("late"),
            (std::pair<int, json::value>(
                200, {{"pod", "default/late"}, {"scheduler", "default-scheduler"}, {"node", "n1"}})));
  EXPECT_EQ(Why("big"), std::make_pair(200, no_node));
  EXPECT_EQ(Why("gated"), std::make_pair(200, gates));
  EXPECT_EQ(Why("foreign"), std::make_pair(200, not_ours));
  EXPECT_EQ(Why("nobody"), (std::pair<int, json::value>(404, "pods \"default/nobody\" not found\n")));
}

TEST_F(SchedulerTest, TellsScoresOfWaitingPods) {
  fake_->Put(MakeNode("n1", "4"));
  fake_->Put(MakeNode("n2", "1"));
  fake_->SetInterceptor([](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.target.find("/binding") == std::string::npos) return std::nullopt;
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "not now"));
  });
  Listen();
  Start();
  Create(MakePod("p", "2"));
  WhyNot("p");  // the binding was refused: it is tried again and again
  const auto [status, told] = Why("p");
  ASSERT_EQ(status, 200);
  const json::array& nodes = told.at("nodes").as_array();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].at("name"), "n1");
  int64_t sum = 0;
  for (const auto& [plugin, score] : nodes[0].at("scores").as_object()) sum += score.as_int64();
  EXPECT_GT(sum, 0);
  EXPECT_EQ(nodes[0].at("total").as_int64(), sum);
  EXPECT_EQ(nodes[1].at("name"), "n2");
  EXPECT_EQ(nodes[1].at("refusedBy"), "NodeResourcesFit");
}

TEST_F(SchedulerTest, ProfilesAreChosenByName) {
  corev1::Node small = MakeNode("small", "2", "4Gi"), large = MakeNode("large", "8", "16Gi");
  fake_->Put(small);
  fake_->Put(large);
  const Result<Config> config = ParseConfig(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- "
      "{schedulerName: default-scheduler}\n"
      "- {schedulerName: packing, pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: "
      "MostAllocated}}}]}\n");
  ASSERT_TRUE(config) << config.error().message();
  Start(*config);
  Create(MakePod("wide", "1", "2Gi"));
  EXPECT_EQ(NodeOf("wide"), "large");
  corev1::Pod packed = MakePod("packed", "1", "2Gi");
  packed.mutable_spec()->set_scheduler_name("packing");
  Create(packed);
  EXPECT_EQ(NodeOf("packed"), "small");
}

TEST_F(SchedulerTest, TaintsAndSelectorsDecide) {
  corev1::Node tainted = MakeNode("tainted"), labelled = MakeNode("labelled", "1");
  corev1::Taint& taint = *tainted.mutable_spec()->add_taints();
  taint.set_key("node.kubernetes.io/not-ready");
  taint.set_effect("NoSchedule");
  (*labelled.mutable_metadata()->mutable_labels())["disk"] = "ssd";
  fake_->Put(tainted);
  fake_->Put(labelled);
  Start();
  corev1::Pod pod = MakePod("p");
  (*pod.mutable_spec()->mutable_node_selector())["disk"] = "ssd";
  Create(pod);
  EXPECT_EQ(NodeOf("p"), "labelled");
  Create(MakePod("big", "2"));
  EXPECT_EQ(WhyNot("big"),
            "Unschedulable: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
            "preemption: 0/2 "
            "nodes are available: 2 Preemption is not helpful for scheduling.");
  Result<corev1::Node> node = api_.Get<corev1::Node>("", "tainted");
  ASSERT_TRUE(node);
  node->mutable_spec()->clear_taints();
  ASSERT_TRUE(api_.Update(*node));
  EXPECT_EQ(NodeOf("big"), "tainted");
}

}  // namespace
}  // namespace keelson::scheduler
