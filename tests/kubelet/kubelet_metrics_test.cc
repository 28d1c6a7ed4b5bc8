#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "kubelet/cm/cgroups/instrumented_cgroups.h"
#include "kubelet/cri/instrumented_runtime.h"
#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/cgroup_names.h"
#include "kubelet/testing/kubelet_harness.h"
#include "kubelet/testing/metric_value.h"
#include "lib/api/codec/codec.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/conformance.h"

namespace keelson::kubelet {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class KubeletMetricsTest : public ::testing::Test {
 protected:
  KubeletMetricsTest() {
    char name[] = "/tmp/kubelet_metrics_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    harness_ = std::make_unique<KubeletHarness>(*instrumented_, *instrumented_images_, *instrumented_cgroups_,
                                                mounter_, dir_, "10.7.0.1");
    runtime_.SetPullable("img:1");
    runtime_.SetExec([](const std::string&, const std::vector<std::string>&) { return cri::ExecResult{}; });
  }
  ~KubeletMetricsTest() override {
    harness_.reset();
    (void)RemoveTree(dir_);
  }
  // Metrics are updated after the status: scrapes until both show.
  Result<std::string> ScrapeWith(const std::vector<std::string>& samples) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      auto text = harness_->backend().Metrics();
      if (!text || std::chrono::steady_clock::now() > deadline) return text;
      if (std::all_of(samples.begin(), samples.end(),
                      [&](const auto& s) { return text->find(s) != text->npos; })) {
        return text;
      }
      std::this_thread::yield();
    }
  }

  std::string dir_;
  cri::FakeRuntime runtime_;
  NoMounts mounter_;
  CgroupNames cgroups_;
  std::unique_ptr<cri::RuntimeService> instrumented_ = InstrumentedRuntimeService(runtime_);
  std::unique_ptr<cri::ImageService> instrumented_images_ = InstrumentedImageService(runtime_);
  std::unique_ptr<PodCgroups> instrumented_cgroups_ = InstrumentedCgroups(cgroups_);
  std::unique_ptr<KubeletHarness> harness_;
};

constexpr char kPod[] = R"({"metadata":{"name":"web"},"spec":{"volumes":[{"name":"tmp","emptyDir":{}}],
  "containers":[{"name":"main","image":"img:1","volumeMounts":[{"name":"tmp","mountPath":"/tmp"}],
    "readinessProbe":{"exec":{"command":["true"]},"periodSeconds":1}}]}})";

TEST_F(KubeletMetricsTest, ScrapeHasWhatDashboardsRelyOn) {
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  // The pod can be Ready before the metrics count it.
  const auto text = ScrapeWith({"kubelet_running_pods 1\n", "kubelet_pod_worker_duration_seconds_bucket",
                                "kubelet_pod_status_sync_duration_seconds_bucket"});
  ASSERT_TRUE(text);
  constexpr const char* kCounters[] = {"kubelet_evented_pleg_connection_error_count",
                                       "kubelet_evented_pleg_connection_success_count",
                                       "kubelet_image_manager_ensure_image_requests_total",
                                       "kubelet_orphaned_runtime_pods_total",
                                       "kubelet_pleg_discard_events",
                                       "kubelet_restarted_pods_total",
                                       "kubelet_runtime_operations_total",
                                       "kubelet_started_containers_total",
                                       "kubelet_started_pods_errors_total",
                                       "kubelet_started_pods_total",
                                       "process_cpu_seconds_total"};
  constexpr const char* kGauges[] = {"kubelet_active_pods",
                                     "kubelet_desired_pods",
                                     "kubelet_managed_ephemeral_containers",
                                     "kubelet_mirror_pods",
                                     "kubelet_node_startup_duration_seconds",
                                     "kubelet_node_startup_post_registration_duration_seconds",
                                     "kubelet_node_startup_pre_kubelet_duration_seconds",
                                     "kubelet_node_startup_pre_registration_duration_seconds",
                                     "kubelet_node_startup_registration_duration_seconds",
                                     "kubelet_orphan_pod_cleaned_volumes",
                                     "kubelet_orphan_pod_cleaned_volumes_errors",
                                     "kubelet_pleg_last_seen_seconds",
                                     "kubelet_pod_in_progress_resizes",
                                     "kubelet_running_containers",
                                     "kubelet_running_pods",
                                     "kubelet_working_pods",
                                     "process_max_fds",
                                     "process_open_fds",
                                     "process_resident_memory_bytes",
                                     "process_start_time_seconds",
                                     "process_virtual_memory_bytes",
                                     "volume_manager_total_volumes"};
  constexpr const char* kHistograms[] = {"kubelet_cgroup_manager_duration_seconds",
                                         "kubelet_image_pull_duration_seconds",
                                         "kubelet_containers_per_pod_count",
                                         "kubelet_pleg_relist_duration_seconds",
                                         "kubelet_pleg_relist_interval_seconds",
                                         "kubelet_pod_start_duration_seconds",
                                         "kubelet_pod_start_sli_duration_seconds",
                                         "kubelet_pod_start_total_duration_seconds",
                                         "kubelet_pod_worker_duration_seconds",
                                         "kubelet_pod_status_sync_duration_seconds",
                                         "kubelet_pod_worker_start_duration_seconds",
                                         "kubelet_run_podsandbox_duration_seconds",
                                         "kubelet_runtime_operations_duration_seconds",
                                         "storage_operation_duration_seconds"};
  for (const char* name : kCounters) {
    EXPECT_THAT(*text, HasSubstr("# TYPE " + std::string(name) + " counter\n"));
  }
  for (const char* name : kGauges) EXPECT_THAT(*text, HasSubstr("# TYPE " + std::string(name) + " gauge\n"));
  for (const char* name : kHistograms) {
    EXPECT_THAT(*text, HasSubstr("# TYPE " + std::string(name) + " histogram\n"));
    EXPECT_THAT(*text, ContainsRegex(std::string(name) + "_bucket\\{.*le=\"\\+Inf\"\\} "));
  }
  for (const char* sample :
       {"kubelet_desired_pods{static=\"\"} 1\n", "kubelet_active_pods{static=\"\"} 1\n",
        "kubelet_running_pods 1\n", "kubelet_running_containers{container_state=\"running\"} 1\n",
        "kubelet_working_pods{lifecycle=\"sync\",config=\"desired\",static=\"\"} 1\n",
        "volume_manager_total_volumes{plugin_name=\"kubernetes.io/"
        "empty-dir\",state=\"actual_state_of_world\"} 1\n"}) {
    EXPECT_THAT(*text, HasSubstr(sample));
  }
  // Of the whole process: other tests may have started some before.
  EXPECT_THAT(*text,
              ContainsRegex("kubelet_started_containers_total\\{container_type=\"container\"\\} [1-9]"));
}

TEST_F(KubeletMetricsTest, LogsAreMeasured) {
  harness_->Start();
  const corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  const std::string log = dir_ + "/logs/default_web_" + pod.metadata().uid() + "/main";
  ASSERT_TRUE(MakeDirs(log));
  ASSERT_TRUE(WriteFile(log + "/0.log", "a line"));
  const std::string sample = "kubelet_container_log_filesystem_used_bytes{uid=\"" + pod.metadata().uid() +
                             "\",namespace=\"default\",pod=\"web\",container=\"main\"} ";
  auto text = harness_->backend().Metrics();
  ASSERT_TRUE(text);
  EXPECT_THAT(*text,
              ContainsRegex(std::string("\n") + "kubelet_container_log_filesystem_used_bytes\\{uid=\"" +
                            pod.metadata().uid() + "\".*container=\"main\"\\} [1-9]"));
  harness_->Delete("web", 0);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  ASSERT_TRUE(RemoveTree(dir_ + "/logs"));
  text = harness_->backend().Metrics();
  ASSERT_TRUE(text);
  EXPECT_EQ(text->find(sample), std::string::npos);
}

TEST_F(KubeletMetricsTest, ResizesAreCountedByWhatBecomesOfThem) {
  harness_->Start();
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1",
      "resources":{"requests":{"cpu":"100m","memory":"1Mi"},"limits":{"cpu":"200m"}}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  const std::string requested = "kubelet_container_requested_resizes_total",
                    done = "kubelet_pod_resize_duration_milliseconds_count{success=\"true\"}",
                    infeasible =
                        "kubelet_pod_infeasible_resizes_total{reason_detail="
                        "\"insufficient_node_allocatable\"}",
                    waits = "kubelet_pod_pending_resizes{reason=\"infeasible\"}";
  auto wish = [&](const char* resource, const char* requirement, const char* operation) {
    return requested + "{resource=\"" + resource + "\",requirement=\"" + requirement + "\",operation=\"" +
           operation + "\"}";
  };
  std::map<std::string, double> before;
  for (const std::string& sample : {wish("cpu", "requests", "increase"), wish("cpu", "limits", "remove"),
                                    wish("memory", "requests", "decrease"), wish("memory", "limits", "add"),
                                    wish("cpu", "requests", "decrease"), done, infeasible, waits}) {
    before[sample] = MetricValue(sample);
  }
  auto ask = [&](const std::string& resources) {
    corev1::Pod pod = harness_->Get("web");
    auto& own = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
    own.Clear();
    ASSERT_TRUE(api::DecodeJson(resources, own));
    ASSERT_TRUE(harness_->api().Update(pod));
  };
  auto grown = [&](const std::string& sample) { return MetricValue(sample) - before[sample]; };
  auto pending = [](const corev1::Pod* pod) {
    const auto* condition = pod ? k8s::FindCondition(pod->status(), "PodResizePending") : nullptr;
    return condition ? condition->reason() : "";
  };
  ask(R"({"requests":{"cpu":"100k","memory":"512Ki"},"limits":{"memory":"2Mi"}})");
  ASSERT_TRUE(harness_->Await("web", [&](const corev1::Pod* pod) { return pending(pod) == "Infeasible"; }));
  EXPECT_EQ(grown(wish("cpu", "requests", "increase")), 1);
  EXPECT_EQ(grown(wish("cpu", "limits", "remove")), 1);
  EXPECT_EQ(grown(wish("memory", "requests", "decrease")), 1);
  EXPECT_EQ(grown(wish("memory", "limits", "add")), 1);
  EXPECT_EQ(grown(infeasible), 1);
  EXPECT_EQ(grown(waits), 1);
  ask(R"({"requests":{"cpu":"50m","memory":"1Mi"},"limits":{"cpu":"200m"}})");
  ASSERT_TRUE(harness_->Await("web", [&](const corev1::Pod* pod) {
    return pod && pending(pod).empty() &&
           pod->status().container_statuses(0).resources().requests().at("cpu").string() == "50m";
  }));
  EXPECT_EQ(grown(wish("cpu", "requests", "decrease")), 1);
  EXPECT_EQ(grown(wish("cpu", "requests", "increase")), 1)
      << "of what was granted, not of what was wished for";
  EXPECT_EQ(grown(done), 1);
  EXPECT_EQ(grown(infeasible), 1);
  EXPECT_EQ(grown(waits), 0);
}

TEST_F(KubeletMetricsTest, EndsOfContainersAreCounted) {
  harness_->Start();
  const std::string failed =
      "kubelet_terminated_containers_total{container_type=\"container\",exit_code=\"3\",reason=\"Error\"}";
  const double before = MetricValue(failed);
  const corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{"restartPolicy":"Never",
      "containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  runtime_.ExitContainer(pod.metadata().uid(), "main", 3);
  ASSERT_TRUE(
      harness_->Await("web", [](const corev1::Pod* p) { return p && p->status().phase() == "Failed"; }));
  EXPECT_EQ(MetricValue(failed) - before, 1);
}

// Metrics of upstream's kubelet that are missing here.
constexpr metrics::Exception kAbsent[] = {
    {"dra_", "devices are not allocated dynamically"},
    {"force_cleaned_failed_volume_", "volumes are read from the mount table, none is reconstructed"},
    {"informer_", "feature gate of client-go, off"},
    {"kubelet_cri_losing_support", "no runtime that works now is given up by a next version"},
    {"kubelet_first_network_pod_start_sli_duration_seconds", "internal: of upstream's own scale tests"},
    {"kubelet_imagemanager_inmemory_", "records of pulls are read from disk, there is no cache to fill"},
    {"kubelet_metrics_provider", "usage is read from cgroups, neither by cAdvisor nor over CRI"},
    {"kubelet_pod_watch_events_dropped_total", "no event is dropped: watches feed no bounded channel"},
    {"kubelet_resource_manager_", "feature gate PodLevelResourceManagers, alpha and off"},
    {"kubelet_started_host_process_containers_", "Windows"},
    {"leader_election_", "a kubelet is elected for nothing"},
    {"reconstruct_volume_operations_", "volumes are read from the mount table, none is reconstructed"},
    {"running_managed_controllers", "no controllers run in a kubelet"},
    {"volume_operation_total_seconds", "upstream's kubelet never observes it"},
};

// Made by parts of a kubelet that are not at work here, or by what seldom happens: tests of those parts hold
// them to Kubernetes' (testing/metrics_check.cc).
constexpr const char* kMadeElsewhere[] = {
    "csi_operations_seconds",
    "kubelet_certificate_manager_",
    "kubelet_cgroup_version",
    "kubelet_container_aligned_compute_resources_",
    "kubelet_container_requested_resizes_total",
    "kubelet_cpu_manager_",
    "kubelet_credential_provider_",
    "kubelet_device_plugin_",
    "kubelet_evented_pleg_connection_latency_seconds",
    "kubelet_eviction",
    "kubelet_graceful_shutdown_",
    "kubelet_http_",
    "kubelet_image_garbage_collected_total",
    "kubelet_imagemanager_",
    "kubelet_lifecycle_handler_http_fallbacks_total",
    "kubelet_memory_manager_",
    "kubelet_memory_qos_",
    "kubelet_node_name",
    "kubelet_pod_deferred_accepted_resizes_total",
    "kubelet_pod_in_progress_resizes",
    "kubelet_pod_infeasible_resizes_total",
    "kubelet_pod_pending_resizes",
    "kubelet_pod_resize_duration_milliseconds",
    "kubelet_pod_resources_endpoint_",
    "kubelet_podcertificate_states",
    "kubelet_preemptions",
    "kubelet_restarted_pods_total",
    "kubelet_server_expiration_renew_errors",
    "kubelet_sleep_action_terminated_early_total",
    "kubelet_topology_manager_",
    "kubelet_volume_metric_collection_duration_seconds",
    "kubernetes_build_info",
    "kubernetes_feature_enabled",
    "plugin_manager_total_plugins",
    "version_info",
};

TEST_F(KubeletMetricsTest, AreThoseOfKubernetes) {
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  ASSERT_TRUE(ScrapeWith({"kubelet_running_pods 1\n", "kubelet_pod_worker_duration_seconds_bucket",
                          "kubelet_pleg_pod_relist_duration_seconds_bucket",
                          "kubelet_pod_status_sync_duration_seconds_bucket"}));
  for (const std::string& difference :
       metrics::Differences({metrics::Component::kKubelet, "", kAbsent}, metrics::Describe())) {
    // Those of lib/client are held there.
    if (difference.starts_with("rest_client_") || difference.starts_with("workqueue_")) continue;
    const bool elsewhere = difference.ends_with(": missing") &&
                           std::any_of(std::begin(kMadeElsewhere), std::end(kMadeElsewhere),
                                       [&](const char* name) { return difference.starts_with(name); });
    if (!elsewhere) ADD_FAILURE() << difference;
  }
  const auto probes = harness_->backend().ProbeMetrics();
  ASSERT_TRUE(probes);
  EXPECT_THAT(
      metrics::Differences({metrics::Component::kKubelet, "/metrics/probes"}, metrics::Describe(*probes)),
      ::testing::IsEmpty());
}

TEST_F(KubeletMetricsTest, ProbesAreCountedByPodAndForgottenWithIt) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  const std::string labels = "container=\"main\",pod=\"web\",namespace=\"default\"";
  auto text = harness_->backend().ProbeMetrics();
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("# TYPE prober_probe_total counter\n"));
  EXPECT_THAT(*text, HasSubstr("# TYPE prober_probe_duration_seconds histogram\n"));
  EXPECT_THAT(*text, HasSubstr("prober_probe_total{probe_type=\"Readiness\",result=\"successful\"," + labels +
                               ",pod_uid=\"" + pod.metadata().uid() + "\"} "));
  EXPECT_THAT(*text,
              HasSubstr("prober_probe_duration_seconds_count{probe_type=\"Readiness\"," + labels + "} "));
  harness_->Delete("web", 1);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  EXPECT_EQ(*harness_->backend().ProbeMetrics(), "");
}

}  // namespace
}  // namespace keelson::kubelet
