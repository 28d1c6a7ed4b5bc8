#include "controlplane/controllers/daemonset/plan.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/common/history.h"
#include "controlplane/controllers/daemonset/failed_pods_backoff.h"
#include "controlplane/controllers/daemonset/testing/daemon_sets.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

TEST(DaemonPlacementTest, NodesWherePodsBelong) {
  struct Case {
    const char* what;
    std::function<void(appsv1::DaemonSet&, corev1::Node&)> change;
    bool should_run, should_continue;
  };
  const Case cases[] = {
      {"any node", [](auto&, auto&) {}, true, true},
      {"named in the template",
       [](auto& set, auto&) { set.mutable_spec()->mutable_template_()->mutable_spec()->set_node_name("n1"); },
       true, true},
      {"another one named",
       [](auto& set, auto&) { set.mutable_spec()->mutable_template_()->mutable_spec()->set_node_name("n2"); },
       false, false},
      {"selector does not match",
       [](auto& set, auto&) {
         (*set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_node_selector())["disk"] = "ssd";
       },
       false, false},
      {"selector matches",
       [](auto& set, auto& node) {
         (*set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_node_selector())["disk"] = "ssd";
         (*node.mutable_metadata()->mutable_labels())["disk"] = "ssd";
       },
       true, true},
      {"affinity does not match",
       [](auto& set, auto&) {
         auto& term = *set.mutable_spec()
                           ->mutable_template_()
                           ->mutable_spec()
                           ->mutable_affinity()
                           ->mutable_node_affinity()
                           ->mutable_required_during_scheduling_ignored_during_execution()
                           ->add_node_selector_terms()
                           ->add_match_expressions();
         term.set_key("disk");
         term.set_operator_("Exists");
       },
       false, false},
      {"NoSchedule: what is there may stay", [](auto&, auto& node) { AddTaint(node, "mine", "NoSchedule"); },
       false, true},
      {"NoExecute", [](auto&, auto& node) { AddTaint(node, "mine", "NoExecute"); }, false, false},
      {"PreferNoSchedule", [](auto&, auto& node) { AddTaint(node, "mine", "PreferNoSchedule"); }, true, true},
      {"tolerated by the template",
       [](auto& set, auto& node) {
         AddTaint(node, "mine", "NoExecute");
         auto& toleration = *set.mutable_spec()->mutable_template_()->mutable_spec()->add_tolerations();
         toleration.set_key("mine");
         toleration.set_operator_("Exists");
       },
       true, true},
      {"not ready", [](auto&, auto& node) { AddTaint(node, "node.kubernetes.io/not-ready", "NoExecute"); },
       true, true},
      {"not ready, NoSchedule",
       [](auto&, auto& node) { AddTaint(node, "node.kubernetes.io/not-ready", "NoSchedule"); }, false, true},
      {"unreachable",
       [](auto&, auto& node) { AddTaint(node, "node.kubernetes.io/unreachable", "NoExecute"); }, true, true},
      {"cordoned",
       [](auto&, auto& node) { AddTaint(node, "node.kubernetes.io/unschedulable", "NoSchedule"); }, true,
       true},
      {"short of memory",
       [](auto&, auto& node) { AddTaint(node, "node.kubernetes.io/memory-pressure", "NoSchedule"); }, true,
       true},
      {"without network",
       [](auto&, auto& node) { AddTaint(node, "node.kubernetes.io/network-unavailable", "NoSchedule"); },
       false, true},
      {"without network, on the host's",
       [](auto& set, auto& node) {
         AddTaint(node, "node.kubernetes.io/network-unavailable", "NoSchedule");
         set.mutable_spec()->mutable_template_()->mutable_spec()->set_host_network(true);
       },
       true, true},
  };
  for (const Case& c : cases) {
    appsv1::DaemonSet set = DaemonSetNamed("agent");
    corev1::Node node = NodeNamed("n1");
    c.change(set, node);
    const DaemonPlacement::Fit fit = DaemonPlacement(set).Of(node);
    EXPECT_EQ(fit.should_run, c.should_run) << c.what;
    EXPECT_EQ(fit.should_continue, c.should_continue) << c.what;
  }
}

TEST(NewDaemonPodTest, IsBoundByAffinityAndTolerates) {
  appsv1::DaemonSet set = DaemonSetNamed("agent");
  (*set.mutable_metadata()->mutable_annotations())["deprecated.daemonset.template.generation"] = "7";
  auto& template_affinity = *set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_affinity();
  template_affinity.mutable_node_affinity()
      ->mutable_required_during_scheduling_ignored_during_execution()
      ->add_node_selector_terms()
      ->add_match_expressions()
      ->set_key("replaced");
  template_affinity.mutable_node_affinity()
      ->add_preferred_during_scheduling_ignored_during_execution()
      ->set_weight(5);
  const corev1::Pod pod = NewDaemonPod(set, "n1", "abc");
  EXPECT_EQ(pod.metadata().generate_name(), "agent-");
  EXPECT_EQ(pod.metadata().labels().at("controller-revision-hash"), "abc");
  EXPECT_EQ(pod.metadata().labels().at("pod-template-generation"), "7");
  EXPECT_TRUE(pod.spec().node_name().empty());
  const auto& affinity = pod.spec().affinity().node_affinity();
  ASSERT_EQ(affinity.required_during_scheduling_ignored_during_execution().node_selector_terms_size(), 1);
  EXPECT_EQ(affinity.preferred_during_scheduling_ignored_during_execution_size(), 1);
  EXPECT_EQ(TargetNodeOf(pod), "n1");
  EXPECT_EQ(pod.spec().tolerations_size(), 6);
  EXPECT_TRUE(api::ControllerOf(pod.metadata()));
  corev1::Pod scheduled = pod;
  scheduled.mutable_spec()->set_node_name("n2");
  EXPECT_EQ(TargetNodeOf(scheduled), "n2");
  EXPECT_EQ(TargetNodeOf(PodNamed("foreign")), "");
}

// A pod: name, node, revision hash, state, and seconds since it was created (and ready).
struct PodSpec {
  std::string name, node, hash = "new", state = "available";
  int age = 100;
};

PodPointers::value_type Make(const PodSpec& spec) {
  corev1::Pod pod = NewDaemonPod(DaemonSetNamed("agent"), spec.node, spec.hash);
  pod.mutable_metadata()->set_name(spec.name);
  pod.mutable_metadata()->set_namespace_("default");
  *pod.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(kNow - std::chrono::seconds(spec.age));
  pod.mutable_status()->set_phase("Running");
  if (spec.state != "unscheduled") pod.mutable_spec()->set_node_name(spec.node);
  if (spec.state == "available") MakeReady(pod, kNow - std::chrono::seconds(spec.age));
  if (spec.state == "failed") pod.mutable_status()->set_phase("Failed");
  if (spec.state == "succeeded") pod.mutable_status()->set_phase("Succeeded");
  if (spec.state == "terminating") *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
  return std::make_shared<corev1::Pod>(pod);
}

PodPointers MakeAll(const std::vector<PodSpec>& specs) {
  PodPointers out;
  for (const PodSpec& spec : specs) out.push_back(Make(spec));
  return out;
}

NodePointers Nodes(std::initializer_list<std::string> names) {
  NodePointers out;
  for (const std::string& name : names) {
    corev1::Node node = NodeNamed(name.substr(0, name.find('!')));
    if (name.ends_with("!")) AddTaint(node, "mine", "NoSchedule");
    if (name.ends_with("!!")) AddTaint(node, "mine", "NoExecute");
    out.push_back(std::make_shared<corev1::Node>(node));
  }
  return out;
}

Names NamesOf(const PodPointers& pods) {
  Names out;
  for (const auto& pod : pods) out.push_back(pod->metadata().name());
  std::sort(out.begin(), out.end());
  return out;
}

appsv1::DaemonSet Rolling(const std::string& unavailable, const std::string& surge, int min_ready = 0) {
  appsv1::DaemonSet set = DaemonSetNamed("agent");
  auto value = [](const std::string& text) {
    return text.ends_with("%") ? k8s::FromString(text) : k8s::FromInt(std::stoi(text));
  };
  auto& rolling = *set.mutable_spec()->mutable_update_strategy()->mutable_rolling_update();
  *rolling.mutable_max_unavailable() = value(unavailable);
  *rolling.mutable_max_surge() = value(surge);
  if (min_ready) set.mutable_spec()->set_min_ready_seconds(min_ready);
  return set;
}

TEST(PlanPodsTest, OneAvailablePodANode) {
  struct Case {
    const char* what;
    NodePointers nodes;
    std::vector<PodSpec> pods;
    Names create, remove;
    std::string surge = "0";
  };
  const Case cases[] = {
      {"none yet", Nodes({"n1", "n2"}), {}, {"n1", "n2"}, {}},
      {"all there", Nodes({"n1"}), {{"a", "n1"}}, {}, {}},
      {"bound and not yet scheduled", Nodes({"n1"}), {{"a", "n1", "new", "unscheduled"}}, {}, {}},
      {"the oldest of several stays",
       Nodes({"n1"}),
       {{"a", "n1", "new", "available", 5}, {"b", "n1"}},
       {},
       {"a"}},
      {"a scheduled one before an older one",
       Nodes({"n1"}),
       {{"a", "n1", "new", "unscheduled", 500}, {"b", "n1"}},
       {},
       {"a"}},
      {"failed and succeeded ones go",
       Nodes({"n1", "n2"}),
       {{"a", "n1", "new", "failed"}, {"b", "n2", "new", "succeeded"}},
       {},
       {"a", "b"}},
      {"one that goes is waited for", Nodes({"n1"}), {{"a", "n1", "new", "terminating"}}, {}, {}},
      {"one that goes is not waited for where surge is allowed",
       Nodes({"n1"}),
       {{"a", "n1", "new", "terminating"}},
       {"n1"},
       {},
       "1"},
      {"may stay but not come", Nodes({"n1!", "n2!"}), {{"a", "n1"}}, {}, {}},
      {"may not stay", Nodes({"n1!!"}), {{"a", "n1"}, {"b", "n1", "new", "terminating"}}, {}, {"a"}},
      {"node has gone",
       Nodes({}),
       {{"a", "n1", "new", "unscheduled"}, {"b", "n1", "new", "available"}},
       {},
       {"a"}},
      {"surge: the new one is not available yet",
       Nodes({"n1"}),
       {{"a", "n1", "old"}, {"b", "n1", "new", "waiting", 5}},
       {},
       {},
       "1"},
      {"surge: the new one is available",
       Nodes({"n1"}),
       {{"a", "n1", "old"}, {"b", "n1", "new", "available", 5}},
       {},
       {"a"},
       "1"},
      {"surge: the old one is not ready",
       Nodes({"n1"}),
       {{"a", "n1", "old", "waiting"}, {"b", "n1", "new", "waiting", 5}},
       {},
       {"a"},
       "1"},
      {"surge: one of each at most",
       Nodes({"n1"}),
       {{"a", "n1", "old"},
        {"b", "n1", "old", "available", 5},
        {"c", "n1", "new", "waiting", 5},
        {"d", "n1", "new", "waiting", 4}},
       {},
       {"b", "d"},
       "1"},
  };
  for (const Case& c : cases) {
    const DaemonRepairs plan = PlanPods(Rolling("1", c.surge), c.nodes, GroupByNode(MakeAll(c.pods)), "new",
                                        kNow, [](const corev1::Pod&) { return false; });
    EXPECT_EQ(plan.create, c.create) << c.what;
    EXPECT_EQ(NamesOf(plan.remove), c.remove) << c.what;
  }
}

TEST(PlanPodsTest, FailedPodsMayBeSpared) {
  const auto pods = GroupByNode(MakeAll({{"a", "n1", "new", "failed"}, {"b", "n2", "new", "failed"}}));
  const DaemonRepairs plan = PlanPods(Rolling("1", "0"), Nodes({"n1", "n2"}), pods, "new", kNow,
                                      [](const corev1::Pod& pod) { return pod.metadata().name() == "a"; });
  EXPECT_EQ(NamesOf(plan.remove), Names{"b"});
  EXPECT_EQ(NamesOf(plan.failed), Names{"b"});
}

TEST(PlanRolloutTest, StaysWithinItsLimits) {
  struct Case {
    const char* what;
    std::string unavailable, surge;
    std::vector<PodSpec> pods;  // of four nodes
    Names create, remove;
  };
  const std::vector<PodSpec> all_old = {
      {"a", "n1", "old"}, {"b", "n2", "old"}, {"c", "n3", "old"}, {"d", "n4", "old"}};
  auto with = [&](std::vector<PodSpec> pods, std::initializer_list<PodSpec> more) {
    for (const PodSpec& one : more) {
      std::erase_if(pods, [&](const PodSpec& other) { return other.name == one.name; });
      pods.push_back(one);
    }
    return pods;
  };
  const Case cases[] = {
      {"one at a time", "1", "0", all_old, {}, {"a"}},
      {"percent, rounded up", "30%", "0", all_old, {}, {"a", "b"}},
      {"neither: one", "0", "0", all_old, {}, {"a"}},
      {"a node without a pod counts",
       "1",
       "0",
       {{"a", "n1", "old"}, {"b", "n2", "old"}, {"c", "n3", "old"}},
       {},
       {}},
      {"a new one that is not available counts",
       "1",
       "0",
       with(all_old, {{"a", "n1", "new", "waiting"}}),
       {},
       {}},
      {"an available new one does not", "1", "0", with(all_old, {{"a", "n1", "new"}}), {}, {"b"}},
      {"an old one that is not available goes first, and counts",
       "1",
       "0",
       with(all_old, {{"c", "n3", "old", "waiting"}}),
       {},
       {"c"}},
      {"an old one that is not available goes whatever else is missing",
       "1",
       "0",
       with(all_old, {{"c", "n3", "old", "waiting"}, {"a", "n1", "new", "waiting"}}),
       {},
       {"c"}},
      {"one that goes counts", "2", "0", with(all_old, {{"a", "n1", "old", "terminating"}}), {}, {"b"}},
      {"nothing old", "1", "0", {{"a", "n1"}, {"b", "n2"}, {"c", "n3"}, {"d", "n4"}}, {}, {}},
      {"surge", "0", "1", all_old, {"n1"}, {}},
      {"surge, percent rounded up", "0", "30%", all_old, {"n1", "n2"}, {}},
      {"surge counts what is not available yet",
       "0",
       "1",
       with(all_old, {{"e", "n1", "new", "waiting"}}),
       {},
       {}},
      {"surge removes the old one then", "0", "1", with(all_old, {{"e", "n1", "new"}}), {"n2"}, {"a"}},
      {"surge replaces what is not available anyway",
       "0",
       "1",
       with(all_old, {{"e", "n1", "new", "waiting"}, {"c", "n3", "old", "waiting"}}),
       {"n3"},
       {}},
  };
  for (const Case& c : cases) {
    const DaemonChanges plan = PlanRollout(Rolling(c.unavailable, c.surge), Nodes({"n1", "n2", "n3", "n4"}),
                                           GroupByNode(MakeAll(c.pods)), "new", kNow);
    EXPECT_EQ(plan.create, c.create) << c.what;
    EXPECT_EQ(NamesOf(plan.remove), c.remove) << c.what;
  }
}

TEST(PlanRolloutTest, SurgeLeavesMisplacedPodsUntilThereAreEnoughElsewhere) {
  const NodePointers nodes = Nodes({"n1!", "n2"});
  const PodSpec misplaced{"a", "n1", "old"};
  auto plan = [&](const PodSpec& other) {
    return NamesOf(
        PlanRollout(Rolling("0", "1"), nodes, GroupByNode(MakeAll({misplaced, other})), "new", kNow).remove);
  };
  EXPECT_EQ(plan({"b", "n2", "new", "waiting"}), Names{});
  EXPECT_EQ(plan({"b", "n2", "new"}), Names{"a"});
}

TEST(PlanRolloutTest, MinReadySecondsDelayAvailability) {
  const auto pods = GroupByNode(MakeAll({{"a", "n1", "new", "available", 20}, {"b", "n2", "old"}}));
  EXPECT_TRUE(PlanRollout(Rolling("1", "0", 30), Nodes({"n1", "n2"}), pods, "new", kNow).remove.empty());
  EXPECT_EQ(NamesOf(PlanRollout(Rolling("1", "0", 10), Nodes({"n1", "n2"}), pods, "new", kNow).remove),
            Names{"b"});
}

TEST(DaemonStatusTest, Counts) {
  appsv1::DaemonSet set = Rolling("1", "0", 10);
  set.mutable_metadata()->set_generation(3);
  set.mutable_status()->set_observed_generation(2);
  const NodePointers nodes = Nodes({"n1", "n2", "n3", "n4", "n5!"});
  const auto pods = GroupByNode(MakeAll({{"a", "n1"},
                                         {"b", "n2", "old", "available", 5},
                                         {"c", "n3", "new", "waiting"},
                                         {"c2", "n3", "old", "waiting", 5},
                                         {"e", "n5"}}));
  const appsv1::DaemonSetStatus status = StatusOf(set, nodes, pods, "new", true, kNow);
  EXPECT_EQ(status.desired_number_scheduled(), 4);
  EXPECT_EQ(status.current_number_scheduled(), 3);
  EXPECT_EQ(status.number_misscheduled(), 1);
  EXPECT_EQ(status.number_ready(), 2);
  EXPECT_EQ(status.number_available(), 1);
  EXPECT_EQ(status.number_unavailable(), 3);
  EXPECT_EQ(status.updated_number_scheduled(), 2);
  EXPECT_EQ(status.observed_generation(), 3);
  EXPECT_EQ(StatusOf(set, nodes, pods, "new", false, kNow).observed_generation(), 2);
}

TEST(FailedPodsTest, DelaysDouble) {
  FakeClock clock;
  FailedPodsBackoff failed(clock);
  EXPECT_FALSE(failed.Replace("a"));
  EXPECT_EQ(failed.Replace("a"), std::optional<std::chrono::nanoseconds>(1s));
  EXPECT_FALSE(failed.Replace("b")) << "another node";
  clock.Advance(1s);
  EXPECT_FALSE(failed.Replace("a"));
  EXPECT_EQ(failed.Replace("a"), std::optional<std::chrono::nanoseconds>(2s));
  for (int i = 0; i < 20; ++i) {
    clock.Advance(15min);
    EXPECT_FALSE(failed.Replace("a"));
  }
  EXPECT_EQ(failed.Replace("a"), std::optional<std::chrono::nanoseconds>(15min));
  clock.Advance(31min);
  EXPECT_FALSE(failed.Replace("a"));
  EXPECT_EQ(failed.Replace("a"), std::optional<std::chrono::nanoseconds>(1s)) << "forgotten";
}

}  // namespace
}  // namespace keelson::controllers
