#include "controlplane/scheduler/plugins/plugins.h"

#include <gtest/gtest.h>

#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/testing/objects.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;

class PluginTest : public ::testing::Test {
 protected:
  // What a filter says of the pod on the node: "" when it fits.
  std::string Filter(Plugin& plugin, const corev1::Pod& pod, const NodeInfo& node) {
    const FilterStatus status = dynamic_cast<FilterPlugin&>(plugin).Filter(state_, *Info(pod, words_), node);
    std::string out;
    for (int i = 0; i < status.count; ++i) out += (i ? ", " : "") + reasons_.Text(status.reasons[i]);
    if (status.code == FilterStatus::Code::kUnschedulableAndUnresolvable) out += " (for good)";
    return out;
  }
  std::string Filter(Plugin& plugin, const corev1::Pod& pod, const corev1::Node& node) {
    return Filter(plugin, pod, Info(node, words_));
  }
  std::vector<int64_t> Scores(Plugin& plugin, const corev1::Pod& pod, const std::vector<NodeInfo>& nodes) {
    auto& score = dynamic_cast<ScorePlugin&>(plugin);
    std::vector<int64_t> out;
    for (const NodeInfo& node : nodes) out.push_back(score.Score(state_, *Info(pod, words_), node));
    score.NormalizeScore(state_, out);
    return out;
  }
  ClusterEvent NodeAdded(const corev1::Node& node) {
    return {ClusterEvent::Kind::kNodeAdd, std::make_shared<const NodeFacts>(node, words_.resources), nullptr,
            nullptr, nullptr};
  }
  ClusterEvent NodeChanged(const corev1::Node& old, const corev1::Node& node) {
    return {ClusterEvent::Kind::kNodeUpdate, std::make_shared<const NodeFacts>(node, words_.resources),
            std::make_shared<const NodeFacts>(old, words_.resources), nullptr, nullptr};
  }
  ClusterEvent PodRemoved(const corev1::Pod& pod) {
    return {ClusterEvent::Kind::kAssignedPodDelete, nullptr, nullptr, Info(pod, words_), nullptr};
  }

  Vocabulary words_;
  Reasons reasons_;
  CycleState state_;
};

TEST_F(PluginTest, NodeName) {
  const auto plugin = NewNodeName(reasons_);
  corev1::Pod pod = MakePod("p");
  EXPECT_EQ(Filter(*plugin, pod, MakeNode("a")), "");
  pod.mutable_spec()->set_node_name("b");
  EXPECT_EQ(Filter(*plugin, pod, MakeNode("a")), "node(s) didn't match the requested node name (for good)");
  EXPECT_EQ(Filter(*plugin, pod, MakeNode("b")), "");
}

TEST_F(PluginTest, NodeUnschedulable) {
  const auto plugin = NewNodeUnschedulable(reasons_);
  corev1::Node node = MakeNode("a");
  corev1::Pod pod = MakePod("p");
  EXPECT_EQ(Filter(*plugin, pod, node), "");
  const corev1::Node before = node;
  node.mutable_spec()->set_unschedulable(true);
  EXPECT_EQ(Filter(*plugin, pod, node), "node(s) were unschedulable (for good)");
  EXPECT_FALSE(plugin->QueueingHint(NodeAdded(node), *Info(pod, words_)));
  EXPECT_TRUE(plugin->QueueingHint(NodeChanged(node, before), *Info(pod, words_)));
  corev1::Toleration& toleration = *pod.mutable_spec()->add_tolerations();
  toleration.set_key("node.kubernetes.io/unschedulable");
  toleration.set_operator_("Exists");
  EXPECT_EQ(Filter(*plugin, pod, node), "");
}

TEST_F(PluginTest, TaintToleration) {
  const auto plugin = NewTaintToleration(reasons_);
  corev1::Node node = MakeNode("a"), soft = MakeNode("b");
  corev1::Taint& taint = *node.mutable_spec()->add_taints();
  taint.set_key("k");
  taint.set_effect("NoSchedule");
  *soft.mutable_spec()->add_taints() = taint;
  soft.mutable_spec()->mutable_taints(0)->set_effect("PreferNoSchedule");
  corev1::Pod pod = MakePod("p");
  EXPECT_EQ(Filter(*plugin, pod, node), "node(s) had untolerated taint(s) (for good)");
  EXPECT_EQ(Filter(*plugin, pod, soft), "");
  EXPECT_EQ(Scores(*plugin, pod, {Info(MakeNode("c"), words_), Info(soft, words_)}),
            (std::vector<int64_t>{100, 0}));
  EXPECT_TRUE(plugin->QueueingHint(NodeChanged(node, MakeNode("a")), *Info(pod, words_)));
  EXPECT_FALSE(plugin->QueueingHint(NodeChanged(MakeNode("a"), MakeNode("a")), *Info(pod, words_)));
  pod.mutable_spec()->add_tolerations()->set_operator_("Exists");
  EXPECT_EQ(Filter(*plugin, pod, node), "");
}

TEST_F(PluginTest, NodeAffinity) {
  const auto plugin = NewNodeAffinity(reasons_);
  corev1::Node node = MakeNode("a"), other = MakeNode("b");
  (*node.mutable_metadata()->mutable_labels())["disk"] = "ssd";
  corev1::Pod pod = MakePod("p");
  (*pod.mutable_spec()->mutable_node_selector())["disk"] = "ssd";
  EXPECT_EQ(Filter(*plugin, pod, node), "");
  EXPECT_EQ(Filter(*plugin, pod, other), "node(s) didn't match Pod's node affinity/selector (for good)");
  EXPECT_TRUE(plugin->QueueingHint(NodeAdded(node), *Info(pod, words_)));
  EXPECT_FALSE(plugin->QueueingHint(NodeAdded(other), *Info(pod, words_)));

  corev1::Pod choosy = MakePod("q");
  auto& preferred = *choosy.mutable_spec()
                         ->mutable_affinity()
                         ->mutable_node_affinity()
                         ->add_preferred_during_scheduling_ignored_during_execution();
  preferred.set_weight(7);
  auto& expression = *preferred.mutable_preference()->add_match_expressions();
  expression.set_key("disk");
  expression.set_operator_("Exists");
  EXPECT_EQ(Scores(*plugin, choosy, {Info(node, words_), Info(other, words_)}),
            (std::vector<int64_t>{100, 0}));
}

TEST_F(PluginTest, NodePorts) {
  const auto plugin = NewNodePorts(reasons_);
  corev1::Pod pod = MakePod("p");
  corev1::ContainerPort& port = *pod.mutable_spec()->mutable_containers(0)->add_ports();
  port.set_container_port(80);
  port.set_host_port(8080);
  NodeInfo node = Info(MakeNode("a"), words_);
  EXPECT_EQ(Filter(*plugin, pod, node), "");
  node.AddPod(Info(pod, words_));
  EXPECT_EQ(Filter(*plugin, pod, node), "node(s) didn't have free ports for the requested pod ports");
  EXPECT_TRUE(plugin->QueueingHint(PodRemoved(pod), *Info(pod, words_)));
  EXPECT_FALSE(plugin->QueueingHint(PodRemoved(MakePod("x")), *Info(pod, words_)));
  node.RemovePod(*Info(pod, words_));
  EXPECT_EQ(Filter(*plugin, pod, node), "");
}

TEST_F(PluginTest, NodeResourcesFit) {
  const auto plugin = NewNodeResourcesFit(reasons_, words_.resources);
  NodeInfo node = Info(MakeNode("a", "1", "1Gi", "2"), words_);
  EXPECT_EQ(Filter(*plugin, MakePod("p", "1", "1Gi"), node), "");
  EXPECT_EQ(Filter(*plugin, MakePod("p", "1001m", "2Gi"), node),
            "Insufficient cpu, Insufficient memory (for good)");
  node.AddPod(Info(MakePod("x", "600m"), words_));
  EXPECT_EQ(Filter(*plugin, MakePod("p", "500m"), node), "Insufficient cpu");
  EXPECT_EQ(Filter(*plugin, MakePod("p", "400m"), node), "");
  node.AddPod(Info(MakePod("y"), words_));
  EXPECT_EQ(Filter(*plugin, MakePod("p"), node), "Too many pods");
  corev1::Pod gpu = MakePod("g");
  (*gpu.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())["example.com/gpu"]
      .set_string("1");
  EXPECT_EQ(Filter(*plugin, gpu, MakeNode("b")), "Insufficient example.com/gpu (for good)");
  corev1::Node with_gpu = MakeNode("c");
  (*with_gpu.mutable_status()->mutable_allocatable())["example.com/gpu"].set_string("1");
  NodeInfo gpu_node = Info(with_gpu, words_);
  EXPECT_EQ(Filter(*plugin, gpu, gpu_node), "");
  gpu_node.AddPod(Info(gpu, words_));
  EXPECT_EQ(Filter(*plugin, gpu, gpu_node), "Insufficient example.com/gpu");
  EXPECT_FALSE(plugin->QueueingHint(NodeAdded(MakeNode("d", "1")), *Info(MakePod("p", "2"), words_)));
  EXPECT_TRUE(plugin->QueueingHint(NodeAdded(MakeNode("d", "2")), *Info(MakePod("p", "2"), words_)));
}

TEST_F(PluginTest, LeastAllocatedPrefersTheEmptierNode) {
  const auto plugin = NewNodeResourcesFit(reasons_, words_.resources);
  NodeInfo empty = Info(MakeNode("a", "4", "8Gi"), words_), half = empty;
  half.AddPod(Info(MakePod("x", "2", "4Gi"), words_));
  EXPECT_EQ(Scores(*plugin, MakePod("p", "1", "2Gi"), {empty, half}), (std::vector<int64_t>{75, 25}));
}

TEST_F(PluginTest, FitStrategies) {
  NodeInfo empty = Info(MakeNode("a", "4", "8Gi"), words_), half = empty;
  half.AddPod(Info(MakePod("x", "2", "4Gi"), words_));
  const corev1::Pod pod = MakePod("p", "1", "2Gi");
  NodeResourcesFitArgs args;
  args.strategy = NodeResourcesFitArgs::Strategy::kMostAllocated;
  EXPECT_EQ(Scores(*NewNodeResourcesFit(reasons_, words_.resources, args), pod, {empty, half}),
            (std::vector<int64_t>{25, 75}));
  args.resources = {{"cpu", 3}, {"memory", 1}};
  EXPECT_EQ(Scores(*NewNodeResourcesFit(reasons_, words_.resources, args), MakePod("p", "2", "2Gi"), {empty}),
            (std::vector<int64_t>{(50 * 3 + 25) / 4}));
  args.strategy = NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio;
  args.resources = {{"cpu", 1}};
  args.shape = {{0, 0}, {50, 10}, {100, 4}};
  EXPECT_EQ(Scores(*NewNodeResourcesFit(reasons_, words_.resources, args), pod, {empty, half}),
            (std::vector<int64_t>{50, 70}));
}

TEST_F(PluginTest, FitLeavesIgnoredResourcesAlone) {
  NodeResourcesFitArgs args;
  args.ignored_groups = {"example.com"};
  const auto plugin = NewNodeResourcesFit(reasons_, words_.resources, args);
  corev1::Pod gpu = MakePod("g");
  (*gpu.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())["example.com/gpu"]
      .set_string("1");
  EXPECT_EQ(Filter(*plugin, gpu, MakeNode("b")), "");
}

TEST_F(PluginTest, FitCountsPodLevelResourcesAndResizes) {
  const auto plugin = NewNodeResourcesFit(reasons_, words_.resources);
  corev1::Pod pod = MakePod("p", "100m");
  (*pod.mutable_spec()->mutable_resources()->mutable_requests())["cpu"].set_string("3");
  EXPECT_EQ(Filter(*plugin, pod, MakeNode("a", "2")), "Insufficient cpu (for good)");
  // On a node it counts for the larger of what is wanted and what it has.
  corev1::Pod resized = MakePod("r", "1");
  resized.mutable_spec()->set_node_name("a");
  corev1::ContainerStatus& status = *resized.mutable_status()->add_container_statuses();
  status.set_name("c");
  (*status.mutable_allocated_resources())["cpu"].set_string("2");
  EXPECT_EQ(Info(resized, words_)->requests.milli_cpu, 2000);
}

TEST_F(PluginTest, SchedulingGates) {
  const auto plugin = NewSchedulingGates();
  const auto& gates = dynamic_cast<PreEnqueuePlugin&>(*plugin);
  corev1::Pod pod = MakePod("p");
  EXPECT_TRUE(gates.PreEnqueue(*Info(pod, words_)));
  pod.mutable_spec()->add_scheduling_gates()->set_name("wait");
  EXPECT_FALSE(gates.PreEnqueue(*Info(pod, words_)));
}

TEST_F(PluginTest, NodeAffinityOfTheProfile) {
  corev1::NodeAffinity added;
  auto& expression = *added.mutable_required_during_scheduling_ignored_during_execution()
                          ->add_node_selector_terms()
                          ->add_match_expressions();
  expression.set_key("disk");
  expression.set_operator_("Exists");
  const auto plugin = NewNodeAffinity(reasons_, added);
  EXPECT_EQ(Filter(*plugin, MakePod("p"), MakeNode("a")),
            "node(s) didn't match scheduler-enforced node affinity (for good)");
}

TEST_F(PluginTest, BalancedAllocationPrefersEqualShares) {
  const auto plugin = NewBalancedAllocation(words_.resources);
  EXPECT_EQ(Scores(*plugin, MakePod("p", "2", "4Gi"),
                   {Info(MakeNode("a", "4", "8Gi"), words_), Info(MakeNode("b", "4", "4Gi"), words_)}),
            (std::vector<int64_t>{75, 62}));
}

TEST_F(PluginTest, BalancedAllocationComparesWithAndWithoutThePod) {
  const auto plugin = NewBalancedAllocation(words_.resources);
  const corev1::Node node = MakeNode("n", "4", "8Gi");
  struct Case {
    const char *what, *used_cpu, *used_memory, *cpu, *memory;
    int64_t want;  // 50 + (50 + with - without) / 2
  };
  for (const Case& c : {Case{"stays equal", "1", "2Gi", "1", "2Gi", 75},        // 100, 100
                        Case{"becomes equal", "2", "0", "0", "4Gi", 87},        // 100, 75
                        Case{"becomes unequal", "0", "0", "2", "0", 62},        // 75, 100
                        Case{"all of one", "0", "0", "4", "0", 50},             // 50, 100
                        Case{"mends the worst", "4", "0", "0", "8Gi", 100}}) {  // 100, 50
    NodeInfo info = Info(node, words_);
    info.AddPod(Info(MakePod("other", c.used_cpu, c.used_memory), words_));
    EXPECT_EQ(Scores(*plugin, MakePod("p", c.cpu, c.memory), {info}), std::vector<int64_t>{c.want}) << c.what;
  }
}

TEST_F(PluginTest, ImageLocalityCountsImageVolumes) {
  const auto plugin = NewImageLocality();
  corev1::Node node = MakeNode("n");
  auto& image = *node.mutable_status()->add_images();
  image.add_names("registry.example/model:latest");
  image.set_size_bytes(int64_t{1000} * 1024 * 1024);
  Cache cache;
  cache.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
  Snapshot snapshot{words_};
  cache.UpdateSnapshot(snapshot);
  corev1::Pod pod = MakePod("p");
  dynamic_cast<ScorePlugin&>(*plugin).PreScore(state_, *Info(pod, words_), snapshot, {});
  EXPECT_EQ(Scores(*plugin, pod, {Info(node, words_)}), std::vector<int64_t>{0});
  corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("model");
  volume.mutable_volume_source()->mutable_image()->set_reference("registry.example/model");
  // 1000 MB of the 2000 MB that a container's and a volume's image count for at most, from 23 MB on.
  EXPECT_EQ(Scores(*plugin, pod, {Info(node, words_)}), std::vector<int64_t>{100 * 977 / 1977});
}

}  // namespace
}  // namespace keelson::scheduler
