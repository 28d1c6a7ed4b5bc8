#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubelet/cm/cgroups/instrumented_cgroups.h"
#include "kubelet/cri/instrumented_runtime.h"
#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/metrics/build_info.h"
#include "kubelet/metrics/pod_startup_latency_tracker.h"
#include "kubelet/testing/cgroup_names.h"
#include "lib/api/codec/codec.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(InstrumentedTest, CallsAreCountedByKindAndOutcome) {
  cri::FakeRuntime fake;
  auto runtime = InstrumentedRuntimeService(fake);
  auto images = InstrumentedImageService(fake);
  ASSERT_TRUE(runtime->ListContainers({}));
  fake.Fail("StartContainer", Error(Code::kUnavailable, "away"));
  EXPECT_FALSE(runtime->StartContainer("x"));
  fake.Fail("RunPodSandbox", Error(Code::kUnavailable, "away"));
  EXPECT_FALSE(runtime->RunPodSandbox({}, "gvisor"));
  ASSERT_TRUE(images->ListImages());
  const std::string text = metrics::Print();
  for (const char* sample :
       {"# TYPE kubelet_runtime_operations_total counter\n",
        "kubelet_runtime_operations_total{operation_type=\"list_containers\"} 1\n",
        "kubelet_runtime_operations_total{operation_type=\"list_images\"} 1\n",
        "# TYPE kubelet_runtime_operations_duration_seconds histogram\n",
        "kubelet_runtime_operations_duration_seconds_bucket{operation_type=\"start_container\",le=\"+Inf\"} "
        "1\n",
        "kubelet_runtime_operations_errors_total{operation_type=\"start_container\"} 1\n",
        "kubelet_run_podsandbox_errors_total{runtime_handler=\"gvisor\"} 1\n",
        "kubelet_started_pods_total 1\n", "kubelet_started_pods_errors_total 1\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
  EXPECT_THAT(text, Not(HasSubstr("errors_total{operation_type=\"list_containers\"}")));
}

class ChangingClasses : public CgroupNames {
 public:
  Result<bool> UpdateQosCgroups(const std::vector<PodPtr>&, const NodeContext&) override { return changed; }
  bool changed = true;
};

// Tells by each answer which call it was.
class TellingCgroups : public CgroupNames {
 public:
  static linux::CgroupUsage UsageWith(uint64_t bytes) {
    linux::CgroupUsage out;
    out.memory_bytes = bytes;
    return out;
  }
  static linux::CgroupPressure PressureWith(uint64_t us) {
    linux::CgroupPressure out;
    out.cpu = linux::Pressure{{us, 0, 0, 0}, {}};
    return out;
  }
  linux::CgroupUsage Usage(const corev1::Pod&) const override { return UsageWith(1); }
  linux::CgroupUsage UsageOfAll() const override { return UsageWith(2); }
  linux::CgroupPressure PressureOfAll() const override { return PressureWith(3); }
  linux::CgroupPressure PressureOfNode() const override { return PressureWith(4); }
  linux::CgroupPressure PressureOf(const corev1::Pod&) const override { return PressureWith(5); }
  ContainerCgroup Container(const corev1::Pod&, const std::string& id) const override {
    return {"/6/" + id, {}, {}};
  }
  bool KillContainer(const corev1::Pod&, const std::string& id) override { return id == "7"; }
  linux::CgroupAccount Account(const std::string& path) const override {
    linux::CgroupAccount out;
    out.processes = path.size();
    return out;
  }
  std::optional<pid_t> AnyProcess(const corev1::Pod&) const override { return 9; }
};

TEST(InstrumentedTest, WhatIsNotMeasuredIsPassedOn) {
  TellingCgroups fake;
  auto cgroups = InstrumentedCgroups(fake);
  const corev1::Pod pod;
  EXPECT_EQ(cgroups->Usage(pod).memory_bytes, 1u);
  EXPECT_EQ(cgroups->UsageOfAll().memory_bytes, 2u);
  EXPECT_EQ(cgroups->PressureOfAll().cpu->some.total_us, 3u);
  EXPECT_EQ(cgroups->PressureOfNode().cpu->some.total_us, 4u);
  EXPECT_EQ(cgroups->PressureOf(pod).cpu->some.total_us, 5u);
  EXPECT_EQ(cgroups->Container(pod, "x").path, "/6/x");
  EXPECT_TRUE(cgroups->KillContainer(pod, "7"));
  EXPECT_EQ(cgroups->Account("/8/8").processes, 4u);
  EXPECT_EQ(cgroups->AnyProcess(pod), 9);
}

TEST(InstrumentedTest, ClassesThatStayAsTheyAreAreNoOperation) {
  ChangingClasses fake;
  auto cgroups = InstrumentedCgroups(fake);
  const std::string sample = "kubelet_cgroup_manager_duration_seconds_count{operation_type=\"update\"} 1\n";
  ASSERT_TRUE(cgroups->UpdateQosCgroups({}, {}));
  EXPECT_THAT(metrics::Print(), HasSubstr(sample));
  fake.changed = false;
  ASSERT_TRUE(cgroups->UpdateQosCgroups({}, {}));
  EXPECT_THAT(metrics::Print(), HasSubstr(sample));
}

TEST(BuildTest, FeaturesHaveTheirStage) {
  SetBuildInfo("n1", {{"ClusterTrustBundleProjection", true}});
  const std::string text = metrics::Print();
  for (const char* sample :
       {"kubelet_node_name{node=\"n1\"} 1\n", "kubernetes_build_info{major=\"1\",minor=\"36\"",
        "kubernetes_feature_enabled{name=\"ClusterTrustBundleProjection\",stage=\"BETA\"} 1\n",
        "kubernetes_feature_enabled{name=\"EventedPLEG\",stage=\"ALPHA\"} 0\n",
        "kubernetes_feature_enabled{name=\"KMSv1\",stage=\"DEPRECATED\"} 0\n",
        "kubernetes_feature_enabled{name=\"CPUManagerPolicyOptions\",stage=\"\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
}

class PodStartupLatencyTrackerTest : public ::testing::Test {
 protected:
  // Made at the clock's present; `status` as the API shows it.
  corev1::Pod Pod(const std::string& status) {
    corev1::Pod pod;
    EXPECT_TRUE(api::DecodeJson(
        R"({"metadata":{"name":"p","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},
            "spec":{"containers":[{"name":"c"}]},"status":)" +
            status + "}",
        pod));
    return pod;
  }
  static double Sum(const std::string& family) {
    const std::string text = metrics::Print();
    const size_t at = text.find(family + "_sum ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + family.size() + 5));
  }
  static constexpr char kRunning[] =
      R"({"phase":"Running","startTime":"2026-01-01T00:00:00Z",
          "initContainerStatuses":[{"name":"i","state":{"terminated":{"startedAt":"2026-01-01T00:00:03Z","finishedAt":"2026-01-01T00:00:05Z"}}}],
          "containerStatuses":[{"name":"c","state":{"running":{"startedAt":"2026-01-01T00:00:09Z"}}}]})";
  FakeClock clock_;
};

TEST_F(PodStartupLatencyTrackerTest, PullsAndInitContainersAreNoDelayOfTheKubelets) {
  PodStartupLatencyTracker tracker(clock_);
  const double total = Sum("kubelet_pod_start_total_duration_seconds"),
               sli = Sum("kubelet_pod_start_sli_duration_seconds"),
               seen = Sum("kubelet_pod_start_duration_seconds");
  clock_.Advance(seconds(1));  // since its creation, when this clock begins
  tracker.ObservePodOnWatch(Pod("{}"));
  tracker.RecordImagePull("u", seconds(4));
  clock_.Advance(seconds(9));
  tracker.ObservePodOnWatch(Pod(kRunning));
  tracker.ObservePodOnWatch(Pod(kRunning));  // told once
  EXPECT_DOUBLE_EQ(Sum("kubelet_pod_start_duration_seconds") - seen, 9);
  EXPECT_DOUBLE_EQ(Sum("kubelet_pod_start_total_duration_seconds") - total, 10);
  EXPECT_DOUBLE_EQ(Sum("kubelet_pod_start_sli_duration_seconds") - sli, 4);
}

TEST_F(PodStartupLatencyTrackerTest, PodsThatAnEarlierKubeletStartedAreNotMeasured) {
  PodStartupLatencyTracker tracker(clock_);
  const double total = Sum("kubelet_pod_start_total_duration_seconds");
  tracker.ObservePodOnWatch(Pod(R"({"phase":"Pending","startTime":"2026-01-01T00:00:00Z"})"));
  tracker.ObservePodOnWatch(Pod(kRunning));
  EXPECT_DOUBLE_EQ(Sum("kubelet_pod_start_total_duration_seconds"), total);
}

}  // namespace
}  // namespace keelson::kubelet
