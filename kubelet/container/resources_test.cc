#include "kubelet/container/resources.h"

#include <gtest/gtest.h>

#include "kubelet/container/memory_control.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

corev1::Pod PodOf(std::string_view json) {
  corev1::Pod pod;
  auto decoded = api::DecodeJson(json, pod);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message());
  return pod;
}

TEST(Resources, FollowTheQosClass) {
  NodeContext node;
  node.memory_capacity = 1000;
  corev1::Pod pod = PodOf(R"({"spec":{"containers":[
    {"name":"a","resources":{"requests":{"cpu":"250m","memory":"100"},"limits":{"cpu":"500m"}}},
    {"name":"b"}]}})");
  cri::LinuxResources a = ContainerResources(pod, pod.spec().containers(0), node);
  EXPECT_EQ(a.cpu_shares, 256);
  EXPECT_EQ(a.cpu_quota, 50000);
  EXPECT_EQ(a.oom_score_adj, 900);
  cri::LinuxResources b = ContainerResources(pod, pod.spec().containers(1), node);
  EXPECT_EQ(b.cpu_shares, 2);
  EXPECT_EQ(b.cpu_quota, 0);
  EXPECT_EQ(b.oom_score_adj, 999);
  linux::CgroupLimits limits = PodCgroupLimits(pod, node, 0);
  EXPECT_EQ(limits.cpu_shares, 256u);
  EXPECT_EQ(limits.cpu_quota_us, -1) << "container b has no limit";
  corev1::Pod best = PodOf(R"({"spec":{"containers":[{"name":"a"}]}})");
  EXPECT_EQ(ContainerResources(best, best.spec().containers(0), node).oom_score_adj, 1000);
}

TEST(Resources, OfThePodAsAWholeCountForItsContainers) {
  NodeContext node;
  node.memory_capacity = 1000;
  corev1::Pod pod = PodOf(R"({"spec":{
    "resources":{"requests":{"cpu":"1","memory":"400"},"limits":{"cpu":"2","memory":"600","hugepages-2Mi":"4Mi"}},
    "initContainers":[{"name":"i","restartPolicy":"Always"}],
    "containers":[{"name":"a","resources":{"requests":{"memory":"100"},"limits":{"cpu":"500m"}}},{"name":"b"}]}})");
  cri::LinuxResources a = ContainerResources(pod, pod.spec().containers(0), node);
  EXPECT_EQ(a.cpu_shares, 512);
  EXPECT_EQ(a.cpu_quota, 50000);
  EXPECT_EQ(a.memory_limit_bytes, 600);
  EXPECT_EQ(a.hugepage_limits["2MB"], 4u << 20);
  EXPECT_EQ(a.oom_score_adj, 800) << "its request and a third of what the pod asks for beyond it";
  cri::LinuxResources b = ContainerResources(pod, pod.spec().containers(1), node);
  EXPECT_EQ(b.cpu_quota, 200000);
  EXPECT_EQ(b.oom_score_adj, 900);
  EXPECT_EQ(ContainerResources(pod, pod.spec().init_containers(0), node).oom_score_adj, 900);
  linux::CgroupLimits limits = PodCgroupLimits(pod, node, 0);
  EXPECT_EQ(limits.cpu_quota_us, 200000);
  EXPECT_EQ(limits.memory_limit_bytes, 600);
  EXPECT_EQ(limits.huge_pages["2MB"], 4 << 20);
}

TEST(Resources, PagesOfASizeThatNobodyAskedForAreNotToBeHad) {
  NodeContext node;
  node.huge_page_sizes = {"2MB", "1GB"};
  corev1::Pod pod = PodOf(R"({"spec":{"containers":[{"name":"a","resources":{
    "requests":{"hugepages-2Mi":"2Mi"},"limits":{"hugepages-2Mi":"2Mi"}}}]}})");
  EXPECT_EQ(ContainerResources(pod, pod.spec().containers(0), node).hugepage_limits,
            (std::map<std::string, uint64_t>{{"1GB", 0}, {"2MB", 2 << 20}}));
  EXPECT_EQ(PodCgroupLimits(pod, node, 0).huge_pages,
            (std::map<std::string, int64_t>{{"1GB", 0}, {"2MB", 2 << 20}}));
  EXPECT_EQ(HugePageSizeName(64 << 10), "64KB");
}

TEST(Resources, NoQuotaOnCpusOfTheirOwn) {
  NodeContext node;
  node.exclusive_cpus = true;
  corev1::Pod pod = PodOf(R"({"spec":{"containers":[{"name":"a","resources":{
    "requests":{"cpu":"2","memory":"1Mi"},"limits":{"cpu":"2","memory":"1Mi"}}}]}})");
  EXPECT_EQ(ContainerResources(pod, pod.spec().containers(0), node).cpu_quota, -1);
  EXPECT_EQ(PodCgroupLimits(pod, node, 0).cpu_quota_us, -1);
  node.exclusive_cpus = false;
  EXPECT_EQ(PodCgroupLimits(pod, node, 0).cpu_quota_us, 200000);
}

TEST(OomScore, SparesWhatTheNodeNeeds) {
  const struct {
    const char* pod;
    int container;  // below 0: an init container
    int score;
  } kCases[] = {
      {R"({"spec":{"priority":2000001000,"priorityClassName":"system-node-critical","containers":[{"name":"a"}]}})",
       0, -997},
      {R"({"spec":{"priority":2000000000,"priorityClassName":"system-cluster-critical","containers":[{"name":"a"}]}})",
       0, 1000},
      {R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"memory":"1"}}}]}})", 0, 999},
      {R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"memory":"1000"}}}]}})", 0, 3},
      {R"({"spec":{"initContainers":[{"name":"s","restartPolicy":"Always"}],"containers":[
        {"name":"a","resources":{"requests":{"memory":"300"}}},
        {"name":"b","resources":{"requests":{"memory":"200"}}}]}})",
       -1, 800}};
  for (const auto& test : kCases) {
    corev1::Pod pod = PodOf(test.pod);
    const corev1::Container& container =
        test.container < 0 ? pod.spec().init_containers(0) : pod.spec().containers(test.container);
    EXPECT_EQ(OomScoreAdjust(pod, container, 1000), test.score) << test.pod;
  }
}

constexpr char kGuaranteedPod[] = R"({"spec":{"containers":[{"name":"a","resources":{
  "requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Mi"}}}]}})";
constexpr char kBurstablePod[] = R"({"spec":{"containers":[{"name":"a","resources":{
  "requests":{"memory":"1Mi"},"limits":{"memory":"2Mi"}}}]}})";
constexpr char kBestEffortPod[] = R"({"spec":{"containers":[{"name":"a"}]}})";

TEST(Memory, SwapGoesToThoseThatMayUseMoreThanTheyAskedFor) {
  NodeContext node;
  node.cgroup_v2 = node.limits_swap = node.limited_swap = true;
  node.memory_capacity = 8 << 20;
  node.swap_capacity = 4 << 20;
  const struct {
    const char* pod;
    const char* swap;
  } kCases[] = {
      {kGuaranteedPod, "0"},
      {kBurstablePod, "524288"},
      {kBestEffortPod, "0"},
      {R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"memory":"2Mi"}}}]}})", "1048576"},
      {R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"memory":"1Mi"},"requests":{"memory":"1Mi"}}}]}})",
       "0"},
      {R"({"spec":{"priority":2000000000,"containers":[{"name":"a","resources":{"requests":{"memory":"2Mi"}}}]}})",
       "0"}};
  for (const auto& test : kCases) {
    corev1::Pod pod = PodOf(test.pod);
    EXPECT_EQ(ContainerResources(pod, pod.spec().containers(0), node).unified["memory.swap.max"], test.swap)
        << test.pod;
  }
  corev1::Pod pod = PodOf(kBurstablePod);
  node.limited_swap = false;
  EXPECT_EQ(ContainerResources(pod, pod.spec().containers(0), node).unified["memory.swap.max"], "0");
  node.cgroup_v2 = false;
  cri::LinuxResources old = ContainerResources(pod, pod.spec().containers(0), node);
  EXPECT_TRUE(old.unified.empty());
  EXPECT_EQ(old.memory_swap_limit_bytes, 2 << 20) << "memory and swap together";
}

TEST(Memory, QosIsOffUnlessAskedFor) {
  NodeContext node;
  node.cgroup_v2 = true;
  node.allocatable["memory"] = api::Amount::FromBytes(11 << 20);
  corev1::Pod burstable = PodOf(kBurstablePod), guaranteed = PodOf(kGuaranteedPod),
              best = PodOf(kBestEffortPod);
  auto unified = [&](const corev1::Pod& pod) {
    return ContainerResources(pod, pod.spec().containers(0), node).unified;
  };
  using Files = std::map<std::string, std::string>;
  EXPECT_EQ(unified(burstable), (Files{{"memory.oom.group", "1"}}));
  EXPECT_FALSE(PodCgroupLimits(burstable, node, 0).memory_low_bytes);
  node.single_process_oom_kill = true;
  EXPECT_EQ(unified(burstable), Files());
  node.memory_qos.on = true;
  EXPECT_EQ(unified(burstable), (Files{{"memory.high", "1990656"}})) << "9/10 of the way, whole pages";
  EXPECT_EQ(unified(guaranteed), Files());
  EXPECT_EQ(unified(best), Files());
  node.memory_qos.tiered = true;
  EXPECT_EQ(unified(burstable), (Files{{"memory.high", "1990656"}, {"memory.low", "1048576"}}));
  EXPECT_EQ(unified(guaranteed), (Files{{"memory.min", "1048576"}}));
  EXPECT_EQ(PodCgroupLimits(burstable, node, 0).memory_low_bytes, 1 << 20);
  EXPECT_EQ(PodCgroupLimits(guaranteed, node, 0).memory_min_bytes, 1 << 20);
  EXPECT_EQ(MemoryHigh(1 << 20, 0, 11 << 20, 0.5), 6 << 20);
}

}  // namespace
}  // namespace keelson::kubelet
