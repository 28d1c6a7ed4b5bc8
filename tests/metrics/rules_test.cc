// The alerts and recording rules of kubernetes-mixin (part of kube-prometheus): which series of Kubernetes
// components each one reads. Missing series are listed with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "controlplane/apiserver/testing/absent_metrics.h"
#include "lib/metrics/conformance.h"
#include "lib/metrics/kubernetes_metrics.h"
#include "proxy/serving/testing/absent_metrics.h"

namespace keelson::metrics {
namespace {

// `from`: the component that serves it; empty: several. Series of kube-state-metrics and node_exporter are
// out of scope.
struct Rule {
  std::string_view name;  // of an alert, or what is recorded
  std::string_view series;
};
constexpr Rule kRules[] = {
    // ---- alerts
    {"KubeVersionMismatch", "kubernetes_build_info"},
    {"KubeClientErrors", "rest_client_requests_total"},
    {"KubeClientCertificateExpiration", "apiserver_client_certificate_expiration_seconds_bucket"},
    {"KubeClientCertificateExpiration", "apiserver_client_certificate_expiration_seconds_count"},
    {"KubeAggregatedAPIErrors", "aggregator_unavailable_apiservice_total"},
    {"KubeAggregatedAPIDown", "aggregator_unavailable_apiservice"},
    {"KubeAPITerminatedRequests", "apiserver_request_terminations_total"},
    {"KubeAPITerminatedRequests", "apiserver_request_total"},
    {"KubeletPodStartUpLatencyHigh", "kubelet_pod_worker_duration_seconds_bucket"},
    {"KubeletPodStartUpLatencyHigh", "kubelet_node_name"},
    {"KubeletClientCertificateExpiration", "kubelet_certificate_manager_client_ttl_seconds"},
    {"KubeletServerCertificateExpiration", "kubelet_certificate_manager_server_ttl_seconds"},
    {"KubeletClientCertificateRenewalErrors", "kubelet_certificate_manager_client_expiration_renew_errors"},
    {"KubeletServerCertificateRenewalErrors", "kubelet_server_expiration_renew_errors"},
    {"KubePersistentVolumeFillingUp", "kubelet_volume_stats_available_bytes"},
    {"KubePersistentVolumeFillingUp", "kubelet_volume_stats_capacity_bytes"},
    {"KubePersistentVolumeFillingUp", "kubelet_volume_stats_used_bytes"},
    {"KubePersistentVolumeInodesFillingUp", "kubelet_volume_stats_inodes"},
    {"KubePersistentVolumeInodesFillingUp", "kubelet_volume_stats_inodes_free"},
    {"KubePersistentVolumeInodesFillingUp", "kubelet_volume_stats_inodes_used"},
    {"CPUThrottlingHigh", "container_cpu_cfs_throttled_periods_total"},
    {"CPUThrottlingHigh", "container_cpu_cfs_periods_total"},
    // ---- recording rules
    {"apiserver_request:burnrate1d", "apiserver_request_sli_duration_seconds_count"},
    {"apiserver_request:burnrate1d", "apiserver_request_sli_duration_seconds_bucket"},
    {"apiserver_request:burnrate1d", "apiserver_request_total"},
    {"cluster_quantile:apiserver_request_sli_duration_seconds:histogram_quantile",
     "apiserver_request_sli_duration_seconds_bucket"},
    {"code_resource:apiserver_request_total:rate5m", "apiserver_request_total"},
    {"code_verb:apiserver_request_total:increase1h", "apiserver_request_total"},
    {"cluster_verb_scope:apiserver_request_sli_duration_seconds_count:increase1h",
     "apiserver_request_sli_duration_seconds_count"},
    {"cluster_verb_scope_le:apiserver_request_sli_duration_seconds_bucket:increase1h",
     "apiserver_request_sli_duration_seconds_bucket"},
    {"cluster_quantile:apiserver_request_slo_duration_seconds:histogram_quantile",
     "apiserver_request_slo_duration_seconds_bucket"},
    {"cluster_quantile:scheduler_scheduling_algorithm_duration_seconds:histogram_quantile",
     "scheduler_scheduling_algorithm_duration_seconds_bucket"},
    {"cluster_quantile:scheduler_scheduling_attempt_duration_seconds:histogram_quantile",
     "scheduler_scheduling_attempt_duration_seconds_bucket"},
    {"cluster_quantile:scheduler_pod_scheduling_sli_duration_seconds:histogram_quantile",
     "scheduler_pod_scheduling_sli_duration_seconds_bucket"},
    {"cluster_quantile:scheduler_e2e_scheduling_duration_seconds:histogram_quantile",
     "scheduler_e2e_scheduling_duration_seconds_bucket"},
    {"cluster_quantile:scheduler_binding_duration_seconds:histogram_quantile",
     "scheduler_binding_duration_seconds_bucket"},
    {"node_quantile:kubelet_pleg_relist_duration_seconds:histogram_quantile",
     "kubelet_pleg_relist_duration_seconds_bucket"},
    {"node_quantile:kubelet_pleg_relist_duration_seconds:histogram_quantile", "kubelet_node_name"},
    {"node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate",
     "container_cpu_usage_seconds_total"},
    {"node_namespace_pod_container:container_memory_working_set_bytes", "container_memory_working_set_bytes"},
    {"node_namespace_pod_container:container_memory_rss", "container_memory_rss"},
    {"node_namespace_pod_container:container_memory_cache", "container_memory_cache"},
    {"node_namespace_pod_container:container_memory_swap", "container_memory_swap"},
    // ---- panels of dashboards that no rule covers
    {"dashboard apiserver", "workqueue_adds_total"},
    {"dashboard apiserver", "workqueue_depth"},
    {"dashboard apiserver", "workqueue_queue_duration_seconds_bucket"},
    {"dashboard apiserver", "process_resident_memory_bytes"},
    {"dashboard apiserver", "process_cpu_seconds_total"},
    {"dashboard apiserver", "go_goroutines"},
    {"dashboard controller-manager", "rest_client_request_duration_seconds_bucket"},
    {"dashboard kubelet", "kubelet_running_pods"},
    {"dashboard kubelet", "kubelet_running_containers"},
    {"dashboard kubelet", "volume_manager_total_volumes"},
    {"dashboard kubelet", "kubelet_node_config_error"},
    {"dashboard kubelet", "kubelet_runtime_operations_total"},
    {"dashboard kubelet", "kubelet_runtime_operations_errors_total"},
    {"dashboard kubelet", "kubelet_runtime_operations_duration_seconds_bucket"},
    {"dashboard kubelet", "kubelet_pod_start_duration_seconds_bucket"},
    {"dashboard kubelet", "storage_operation_duration_seconds_bucket"},
    {"dashboard kubelet", "storage_operation_errors_total"},
    {"dashboard kubelet", "kubelet_cgroup_manager_duration_seconds_bucket"},
    {"dashboard kubelet", "kubelet_pleg_relist_interval_seconds_bucket"},
    {"dashboard proxy", "kubeproxy_sync_proxy_rules_duration_seconds_bucket"},
    {"dashboard proxy", "kubeproxy_network_programming_duration_seconds_bucket"},
    {"dashboard network", "container_network_receive_bytes_total"},
    {"dashboard network", "container_network_transmit_bytes_total"},
    {"dashboard network", "container_network_receive_packets_total"},
    {"dashboard network", "container_network_receive_packets_dropped_total"},
    {"dashboard network", "container_network_transmit_packets_total"},
    {"dashboard network", "container_network_transmit_packets_dropped_total"},
    {"dashboard storage", "container_fs_reads_total"},
    {"dashboard storage", "container_fs_writes_total"},
    {"dashboard storage", "container_fs_reads_bytes_total"},
    {"dashboard storage", "container_fs_writes_bytes_total"},
};

constexpr Exception kUnserved[] = {
    {"apiserver_request_slo_duration_seconds", "hidden since Kubernetes 1.28; newer rules read the sli one"},
    {"go_goroutines", "there is no Go in it"},
    {"kubelet_node_config_error", "gone from Kubernetes with dynamic configuration"},
    {"scheduler_binding_duration_seconds", "gone from Kubernetes 1.23"},
    {"scheduler_e2e_scheduling_duration_seconds", "gone from Kubernetes 1.26: scheduling_attempt_duration"},
    {"storage_operation_errors_total", "gone from Kubernetes 1.25: the duration has a status"},
};

// cAdvisor's series, which are not in Kubernetes' list; kubelet/stats checks them.
constexpr std::string_view kOfContainers[] = {"container_cpu_cfs_periods_total",
                                              "container_cpu_cfs_throttled_periods_total",
                                              "container_cpu_usage_seconds_total",
                                              "container_fs_reads_bytes_total",
                                              "container_fs_reads_total",
                                              "container_fs_writes_bytes_total",
                                              "container_fs_writes_total",
                                              "container_memory_cache",
                                              "container_memory_rss",
                                              "container_memory_swap",
                                              "container_memory_working_set_bytes",
                                              "container_network_receive_bytes_total",
                                              "container_network_receive_packets_dropped_total",
                                              "container_network_receive_packets_total",
                                              "container_network_transmit_bytes_total",
                                              "container_network_transmit_packets_dropped_total",
                                              "container_network_transmit_packets_total"};

std::string_view FamilyOf(std::string_view series) {
  for (std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (series.ends_with(suffix)) return series.substr(0, series.size() - suffix.size());
  }
  return series;
}

bool Has(Component component, std::string_view name, std::span<const Exception> absent) {
  for (const Exception& one : absent) {
    if (one.name == name || (one.name.ends_with('_') && name.starts_with(one.name))) return false;
  }
  for (const KubernetesMetric* metric : MetricsOf(component)) {
    if (metric->name == name) return true;
  }
  return false;
}

// The components' own tests check them against the table; their missing series for these rules are listed
// above.
bool IsServed(std::string_view name) {
  if (name.starts_with("process_")) return true;
  for (std::string_view one : kOfContainers) {
    if (one == name) return true;
  }
  return Has(Component::kApiserver, name, apiserver::kAbsentMetrics) ||
         Has(Component::kProxy, name, proxy::kAbsentMetrics) || Has(Component::kKubelet, name, {}) ||
         Has(Component::kScheduler, name, {}) || Has(Component::kControllers, name, {});
}

TEST(Rules, EverySeriesIsServedOrListed) {
  std::set<std::string_view> unserved;
  for (const Rule& rule : kRules) {
    const std::string_view name = FamilyOf(rule.series);
    const bool listed = std::any_of(std::begin(kUnserved), std::end(kUnserved),
                                    [&](const Exception& one) { return one.name == name; });
    EXPECT_NE(IsServed(name), listed) << rule.name << " reads " << rule.series;
    if (listed) unserved.insert(name);
  }
  for (const Exception& one : kUnserved) {
    EXPECT_TRUE(unserved.count(one.name)) << one.name << ": no rule reads it";
  }
}

}  // namespace
}  // namespace keelson::metrics
