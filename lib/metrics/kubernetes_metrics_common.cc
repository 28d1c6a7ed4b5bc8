// Metrics of every component.
#include "lib/metrics/kubernetes_metrics.h"

namespace keelson::metrics {
namespace {

constexpr KubernetesMetric kTable[] = {
    {"disabled_metrics_total", Kind::kCounter, Stability::kBeta, ""},
    {"hidden_metrics_total", Kind::kCounter, Stability::kBeta, ""},
    {"informer_processing_latency_seconds", Kind::kHistogram, Stability::kAlpha,
     "group,name,resource,version", "0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10"},
    {"informer_queued_items", Kind::kGauge, Stability::kAlpha, "group,name,resource,version"},
    {"kubernetes_build_info", Kind::kGauge, Stability::kBeta,
     "build_date,compiler,git_commit,git_tree_state,git_version,go_version,major,minor,platform"},
    {"kubernetes_feature_enabled", Kind::kGauge, Stability::kBeta, "name,stage"},
    {"kubernetes_healthcheck", Kind::kGauge, Stability::kStable, "name,type", "", "", "/metrics/slis"},
    {"kubernetes_healthchecks_total", Kind::kCounter, Stability::kStable, "name,status,type", "", "",
     "/metrics/slis"},
    {"leader_election_master_status", Kind::kGauge, Stability::kAlpha, "name"},
    {"leader_election_slowpath_total", Kind::kCounter, Stability::kAlpha, "name"},
    {"registered_metrics_total", Kind::kCounter, Stability::kBeta, "deprecated_version,stability_level"},
    {"rest_client_dns_resolution_duration_seconds", Kind::kHistogram, Stability::kAlpha, "host",
     "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30"},
    {"rest_client_exec_plugin_call_total", Kind::kCounter, Stability::kAlpha, "call_status,code"},
    {"rest_client_exec_plugin_certificate_rotation_age", Kind::kHistogram, Stability::kAlpha, "",
     "600 1800 3600 14400 86400 604800 2.592e+06 7.776e+06 1.5552e+07 3.1104e+07 1.24416e+08"},
    {"rest_client_exec_plugin_policy_call_total", Kind::kCounter, Stability::kAlpha, "allowed,denied"},
    {"rest_client_exec_plugin_ttl_seconds", Kind::kGauge, Stability::kAlpha, ""},
    {"rest_client_rate_limiter_duration_seconds", Kind::kHistogram, Stability::kAlpha, "host,verb",
     "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60"},
    {"rest_client_request_duration_seconds", Kind::kHistogram, Stability::kAlpha, "host,verb",
     "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60"},
    {"rest_client_request_retries_total", Kind::kCounter, Stability::kAlpha, "code,host,verb"},
    {"rest_client_request_size_bytes", Kind::kHistogram, Stability::kAlpha, "host,verb",
     "64 256 512 1024 4096 16384 65536 262144 1.04858e+06 4.1943e+06 1.67772e+07"},
    {"rest_client_requests_total", Kind::kCounter, Stability::kAlpha, "code,host,method"},
    {"rest_client_response_size_bytes", Kind::kHistogram, Stability::kAlpha, "host,verb",
     "64 256 512 1024 4096 16384 65536 262144 1.04858e+06 4.1943e+06 1.67772e+07"},
    {"rest_client_transport_cache_entries", Kind::kGauge, Stability::kAlpha, ""},
    {"rest_client_transport_create_calls_total", Kind::kCounter, Stability::kAlpha, "result"},
    {"running_managed_controllers", Kind::kGauge, Stability::kBeta, "manager,name"},
    {"version_info", Kind::kGauge, Stability::kAlpha, "binary,component,emulation,min_compat"},
    {"workqueue_adds_total", Kind::kCounter, Stability::kBeta, "name"},
    {"workqueue_depth", Kind::kGauge, Stability::kBeta, "name"},
    {"workqueue_longest_running_processor_seconds", Kind::kGauge, Stability::kBeta, "name"},
    {"workqueue_queue_duration_seconds", Kind::kHistogram, Stability::kBeta, "name", "1e-08*10^10"},
    {"workqueue_retries_total", Kind::kCounter, Stability::kBeta, "name"},
    {"workqueue_unfinished_work_seconds", Kind::kGauge, Stability::kBeta, "name"},
    {"workqueue_work_duration_seconds", Kind::kHistogram, Stability::kBeta, "name", "1e-08*10^10"},
};

}  // namespace

std::span<const KubernetesMetric> MetricsOfCommon() { return kTable; }

}  // namespace keelson::metrics
