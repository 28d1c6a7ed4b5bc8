// Metrics of kube-scheduler.
#include "lib/metrics/kubernetes_metrics.h"

namespace keelson::metrics {
namespace {

constexpr KubernetesMetric kTable[] = {
    {"kube_pod_resource_limit", Kind::kAny, Stability::kStable,
     "namespace,node,pod,priority,resource,scheduler,unit"},
    {"kube_pod_resource_request", Kind::kAny, Stability::kStable,
     "namespace,node,pod,priority,resource,scheduler,unit"},
    {"scheduler_async_api_call_execution_duration_seconds", Kind::kHistogram, Stability::kAlpha,
     "call_type,result", "0.001*2^15"},
    {"scheduler_async_api_call_execution_total", Kind::kCounter, Stability::kAlpha, "call_type,result"},
    {"scheduler_batch_attempts_total", Kind::kCounter, Stability::kAlpha, "profile,result"},
    {"scheduler_batch_cache_flushed_total", Kind::kCounter, Stability::kAlpha, "profile,reason"},
    {"scheduler_cache_size", Kind::kGauge, Stability::kAlpha, "type"},
    {"scheduler_event_handling_duration_seconds", Kind::kHistogram, Stability::kAlpha, "event",
     "0.0001*2^12"},
    {"scheduler_framework_extension_point_duration_seconds", Kind::kHistogram, Stability::kStable,
     "extension_point,profile,status", "0.0001*2^12"},
    {"scheduler_get_node_hint_duration_seconds", Kind::kHistogram, Stability::kAlpha, "hinted,profile",
     "1e-05*2^12"},
    {"scheduler_goroutines", Kind::kGauge, Stability::kAlpha, "operation"},
    {"scheduler_inflight_events", Kind::kGauge, Stability::kAlpha, "event"},
    {"scheduler_pending_async_api_calls", Kind::kGauge, Stability::kAlpha, "call_type"},
    {"scheduler_pending_pods", Kind::kGauge, Stability::kStable, "queue"},
    {"scheduler_permit_wait_duration_seconds", Kind::kHistogram, Stability::kAlpha, "result", "0.001*2^15"},
    {"scheduler_plugin_evaluation_total", Kind::kCounter, Stability::kAlpha,
     "extension_point,plugin,profile"},
    {"scheduler_plugin_execution_duration_seconds", Kind::kHistogram, Stability::kAlpha,
     "extension_point,plugin,status", "1e-05*1.5^20"},
    {"scheduler_pod_scheduled_after_flush_total", Kind::kCounter, Stability::kAlpha, ""},
    {"scheduler_pod_scheduling_attempts", Kind::kHistogram, Stability::kStable, "", "1*2^5"},
    {"scheduler_pod_scheduling_sli_duration_seconds", Kind::kHistogram, Stability::kBeta, "attempts",
     "0.01*2^20"},
    {"scheduler_podgroup_schedule_attempts_total", Kind::kCounter, Stability::kAlpha, "profile,result"},
    {"scheduler_podgroup_scheduling_algorithm_duration_seconds", Kind::kHistogram, Stability::kAlpha, "",
     "0.001*2^15"},
    {"scheduler_podgroup_scheduling_attempt_duration_seconds", Kind::kHistogram, Stability::kAlpha,
     "profile,result", "0.001*2^15"},
    {"scheduler_preemption_attempts_total", Kind::kCounter, Stability::kStable, ""},
    {"scheduler_preemption_goroutines_duration_seconds", Kind::kHistogram, Stability::kAlpha, "result",
     "0.01*2^20"},
    {"scheduler_preemption_goroutines_execution_total", Kind::kCounter, Stability::kAlpha, "result"},
    {"scheduler_preemption_victims", Kind::kHistogram, Stability::kStable, "", "1*2^7"},
    {"scheduler_queue_incoming_pods_total", Kind::kCounter, Stability::kStable, "event,queue"},
    {"scheduler_queueing_hint_execution_duration_seconds", Kind::kHistogram, Stability::kAlpha,
     "event,hint,plugin", "1e-05*1.5^20"},
    {"scheduler_resourceclaim_creates_total", Kind::kCounter, Stability::kAlpha, "status"},
    {"scheduler_schedule_attempts_total", Kind::kCounter, Stability::kStable, "profile,result"},
    {"scheduler_scheduling_algorithm_duration_seconds", Kind::kHistogram, Stability::kAlpha, "",
     "0.001*2^15"},
    {"scheduler_scheduling_attempt_duration_seconds", Kind::kHistogram, Stability::kStable, "profile,result",
     "0.001*2^15"},
    {"scheduler_store_schedule_results_duration_seconds", Kind::kHistogram, Stability::kAlpha, "profile",
     "1e-05*2^12"},
    {"scheduler_unschedulable_pods", Kind::kGauge, Stability::kAlpha, "plugin,profile"},
    {"scheduler_volume_binder_cache_requests_total", Kind::kCounter, Stability::kAlpha, "operation"},
    {"scheduler_volume_scheduling_stage_error_total", Kind::kCounter, Stability::kAlpha, "operation"},
};

}  // namespace

std::span<const KubernetesMetric> MetricsOfScheduler() { return kTable; }

}  // namespace keelson::metrics
