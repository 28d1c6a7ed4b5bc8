// Preemption: the victims and the node.
#include "controlplane/scheduler/plugins/testing/plugin_test.h"

namespace keelson::scheduler {
namespace {

corev1::Pod Important(const std::string& name, const std::string& cpu, int priority) {
  corev1::Pod pod = MakePod(name, cpu);
  pod.mutable_spec()->set_priority(priority);
  return pod;
}

TEST_F(ClusterPluginTest, PreemptsTheFewestAndLeastImportant) {
  Zoned("a", "z1", "4");
  Zoned("b", "z2", "4");
  SetNodes();
  Place(Important("a1", "2", 5), "a");
  Place(Important("a2", "2", 1), "a");
  Place(Important("b1", "4", 3), "b");
  EXPECT_EQ(Schedule(Important("p", "2", 10)), "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_EQ(executor_.evicted_, "a: a2");  // of lower priority than b1
  executor_.evicted_.clear();
  EXPECT_EQ(Schedule(Important("p", "2", 1)),
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No "
            "preemption victims "
            "found for incoming pod.");
  EXPECT_EQ(executor_.evicted_, "");
  EXPECT_EQ(Schedule(Important("p", "5", 10)),
            std::string("0/2 nodes are available: 2 Insufficient cpu.") + kNotHelpful);
  corev1::Pod polite = Important("p", "2", 10);
  polite.mutable_spec()->set_preemption_policy("Never");
  EXPECT_EQ(
      Schedule(polite),
      "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.");
}

TEST_F(ClusterPluginTest, BudgetsAreBrokenLast) {
  Zoned("a", "z1", "2");
  Zoned("b", "z2", "2");
  SetNodes();
  corev1::Pod guarded = Important("guarded", "2", 1);
  (*guarded.mutable_metadata()->mutable_labels())["app"] = "db";
  Place(guarded, "a");
  Place(Important("plain", "2", 5), "b");
  executor_.budgets_.push_back({"default", *api::LabelSelector::Parse("app=db"), 0, {}});
  Schedule(Important("p", "1", 10));
  EXPECT_EQ(executor_.evicted_, "b: plain");
  executor_.budgets_[0].disruptions_allowed = 1;
  Schedule(Important("q", "1", 10));
  EXPECT_EQ(executor_.evicted_, "a: guarded");
}

// As the eviction API has it: an empty selector is of all pods of the namespace, also those without labels.
TEST_F(ClusterPluginTest, AnEmptySelectorProtectsAllPods) {
  Zoned("a", "z1", "2");
  Zoned("b", "z2", "2");
  SetNodes();
  Place(Important("bare", "2", 1), "a");
  corev1::Pod elsewhere = Important("elsewhere", "2", 5);
  elsewhere.mutable_metadata()->set_namespace_("other");
  Place(elsewhere, "b");
  executor_.budgets_.push_back({"default", *api::LabelSelector::From({}), 0, {}});
  Schedule(Important("p", "1", 10));
  EXPECT_EQ(executor_.evicted_, "b: elsewhere");
}

TEST_F(ClusterPluginTest, OthersMayChooseTheVictims) {
  Zoned("a", "z1", "4");
  Zoned("b", "z2", "4");
  SetNodes();
  Place(Important("a1", "4", 1), "a");
  Place(Important("b1", "4", 5), "b");
  executor_.call_extenders_ = [](NodeToVictims& victims) -> Result<> {
    std::erase_if(victims, [](const auto& item) { return item.second.pods[0]->name == "a1"; });
    return {};
  };
  Schedule(Important("p", "2", 10));
  EXPECT_EQ(executor_.evicted_, "b: b1");
  executor_.evicted_.clear();
  const std::string lacks = "0/2 nodes are available: 2 Insufficient cpu. preemption: ";
  executor_.call_extenders_ = [](NodeToVictims& victims) -> Result<> {
    victims.clear();
    return {};
  };
  EXPECT_EQ(Schedule(Important("p", "2", 10)), lacks + "no candidate node for preemption");
  executor_.call_extenders_ = [](NodeToVictims&) -> Result<> {
    return Error(Code::kUnavailable, "no answer");
  };
  EXPECT_EQ(Schedule(Important("p", "2", 10)), lacks + "no answer");
  EXPECT_EQ(executor_.evicted_, "");
}

TEST_F(ClusterPluginTest, RoomForNominatedPodsIsNotForOthers) {
  Zoned("a", "z1", "2");
  SetNodes();
  const corev1::Pod first = Important("first", "2", 10);
  cache_.Nominate(Info(first, words_), "a");
  EXPECT_EQ(Schedule(Important("late", "1", 5)).find("0/1 nodes are available: 1 Insufficient cpu."), 0u);
  EXPECT_EQ(Schedule(Important("late", "1", 5)).find("0/1 nodes are available: 1 Insufficient cpu."), 0u);
  EXPECT_EQ(Schedule(Important("higher", "1", 20)), "a");
  EXPECT_EQ(Schedule(first), "a");
  cache_.Nominate(Info(first, words_), "");
  EXPECT_EQ(Schedule(Important("late", "1", 5)), "a");
}

}  // namespace
}  // namespace keelson::scheduler
