#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "ctl/why/report.h"

namespace keelson::ctl {
namespace {

TEST(WhyPod, TellsWhatEachNodeLacks) {
  const boost::json::value answer = boost::json::parse(R"({"pod":"default/p","scheduler":"default-scheduler",
      "queue":"unschedulable","rejectedBy":["NodeResourcesFit"],
      "nodes":[{"name":"n1","refusedBy":"NodeResourcesFit","reasons":["Insufficient cpu"],
                "numbers":"cpu (milli): 2000 wanted, 500 of 1000 in use"}]})");
  EXPECT_TRUE(HasNowhereToGo(answer));
  EXPECT_EQ(WhyPodText(answer),
            "Pod default/p has no node; default-scheduler has it as unschedulable, last ruled out by "
            "NodeResourcesFit\n"
            "\n"
            "  NODE   REFUSED BY         WHY\n"
            "  n1     NodeResourcesFit   Insufficient cpu (cpu (milli): 2000 wanted, 500 of 1000 in use)\n");
}

TEST(WhyPod, TellsScores) {
  const boost::json::value answer = boost::json::parse(R"({"pod":"default/p","scheduler":"s","queue":"active",
      "rejectedBy":[],"nodes":[{"name":"n1","total":7,"scores":{"A":3,"B":4}},{"name":"n2","refusedBy":"F","reasons":["r"]}]})");
  EXPECT_FALSE(HasNowhereToGo(answer));
  EXPECT_EQ(WhyPodText(answer),
            "Pod default/p has no node; s has it as active\n"
            "\n"
            "  NODE   SCORE   A   B\n"
            "  n1     7       3   4\n"
            "\n"
            "  NODE   REFUSED BY   WHY\n"
            "  n2     F            r\n");
}

TEST(WhyPod, TellsWhatConcernsAllNodes) {
  EXPECT_EQ(WhyPodText(boost::json::parse(R"({"pod":"default/p","scheduler":"s","node":"n1"})")),
            "Pod default/p is on node n1\n");
  EXPECT_EQ(
      WhyPodText(boost::json::parse(
          R"({"pod":"default/p","scheduler":"s","queue":"gated","rejectedBy":[],
                    "refused":{"plugin":"SchedulingGates","message":"waiting for scheduling gates: a"}})")),
      "Pod default/p has no node; s has it as gated\n\n  SchedulingGates: waiting for scheduling gates: a\n");
}

}  // namespace
}  // namespace keelson::ctl
