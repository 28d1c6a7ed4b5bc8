// Metrics of kube-controller-manager 1.36, with upstream's names. lib/client has those of work queues,
// clients and leader election.
#pragma once

#include "lib/metrics/metrics.h"

namespace keelson::controllers {

// All families are registered together, so that each exists before its controller runs.
struct Metrics {
  metrics::Family& forced_detaches =
      metrics::Counter("attach_detach_controller_attachdetach_controller_forced_detaches",
                       "Number of times the A/D Controller performed a forced detach", {"reason"});
  metrics::Family& cronjob_job_creation_skew_duration_seconds =
      metrics::Histograms("cronjob_controller_job_creation_skew_duration_seconds",
                          "Time between when a cronjob is scheduled to be run, and when the corresponding "
                          "job is created",
                          metrics::ExponentialBuckets(1, 2, 10));
  metrics::Family& endpoint_slice_changes =
      metrics::Counter("endpoint_slice_controller_changes", "Number of EndpointSlice changes", {"operation"});
  metrics::Family& endpoint_slice_desired_endpoint_slices =
      metrics::Gauge("endpoint_slice_controller_desired_endpoint_slices",
                     "Number of EndpointSlices that would exist with perfect endpoint allocation");
  metrics::Family& endpoint_slice_endpoints_added_per_sync = metrics::Histograms(
      "endpoint_slice_controller_endpoints_added_per_sync", "Number of endpoints added on each Service sync",
      metrics::ExponentialBuckets(2, 2, 15));
  metrics::Family& endpoint_slice_endpoints_desired =
      metrics::Gauge("endpoint_slice_controller_endpoints_desired", "Number of endpoints desired");
  metrics::Family& endpoint_slice_endpoints_removed_per_sync = metrics::Histograms(
      "endpoint_slice_controller_endpoints_removed_per_sync",
      "Number of endpoints removed on each Service sync", metrics::ExponentialBuckets(2, 2, 15));
  metrics::Family& endpoint_slice_endpointslices_changed_per_sync = metrics::Histograms(
      "endpoint_slice_controller_endpointslices_changed_per_sync",
      "Number of EndpointSlices changed on each Service sync",
      {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, {"topology", "traffic_distribution"});
  metrics::Family& endpoint_slice_num_endpoint_slices =
      metrics::Gauge("endpoint_slice_controller_num_endpoint_slices", "Number of EndpointSlices");
  metrics::Family& endpoint_slice_services_count_by_traffic_distribution =
      metrics::Gauge("endpoint_slice_controller_services_count_by_traffic_distribution",
                     "Number of Services using some specific trafficDistribution", {"traffic_distribution"});
  metrics::Family& endpoint_slice_syncs =
      metrics::Counter("endpoint_slice_controller_syncs", "Number of EndpointSlice syncs", {"result"});
  metrics::Family& mirroring_addresses_skipped_per_sync =
      metrics::Histograms("endpoint_slice_mirroring_controller_addresses_skipped_per_sync",
                          "Number of addresses skipped on each Endpoints sync due to being invalid or "
                          "exceeding MaxEndpointsPerSubset",
                          metrics::ExponentialBuckets(2, 2, 15));
  metrics::Family& mirroring_changes = metrics::Counter("endpoint_slice_mirroring_controller_changes",
                                                        "Number of EndpointSlice changes", {"operation"});
  metrics::Family& mirroring_desired_endpoint_slices =
      metrics::Gauge("endpoint_slice_mirroring_controller_desired_endpoint_slices",
                     "Number of EndpointSlices that would exist with perfect endpoint allocation");
  metrics::Family& mirroring_endpoints_added_per_sync = metrics::Histograms(
      "endpoint_slice_mirroring_controller_endpoints_added_per_sync",
      "Number of endpoints added on each Endpoints sync", metrics::ExponentialBuckets(2, 2, 15));
  metrics::Family& mirroring_endpoints_desired =
      metrics::Gauge("endpoint_slice_mirroring_controller_endpoints_desired", "Number of endpoints desired");
  metrics::Family& mirroring_endpoints_removed_per_sync = metrics::Histograms(
      "endpoint_slice_mirroring_controller_endpoints_removed_per_sync",
      "Number of endpoints removed on each Endpoints sync", metrics::ExponentialBuckets(2, 2, 15));
  metrics::Family& mirroring_endpoints_sync_duration = metrics::Histograms(
      "endpoint_slice_mirroring_controller_endpoints_sync_duration", "Duration of syncEndpoints() in seconds",
      metrics::ExponentialBuckets(0.001, 2, 15));
  metrics::Family& mirroring_endpoints_updated_per_sync = metrics::Histograms(
      "endpoint_slice_mirroring_controller_endpoints_updated_per_sync",
      "Number of endpoints updated on each Endpoints sync", metrics::ExponentialBuckets(2, 2, 15));
  metrics::Family& mirroring_num_endpoint_slices =
      metrics::Gauge("endpoint_slice_mirroring_controller_num_endpoint_slices", "Number of EndpointSlices");
  metrics::Family& ephemeral_volume_create_failures_total =
      metrics::Counter("ephemeral_volume_controller_create_failures_total",
                       "Number of PersistentVolumeClaim creation request failures");
  metrics::Family& ephemeral_volume_create_total = metrics::Counter(
      "ephemeral_volume_controller_create_total", "Number of PersistentVolumeClaim creation requests");
  metrics::Family& horizontal_pod_autoscaler_desired_replicas =
      metrics::Gauge("horizontal_pod_autoscaler_controller_desired_replicas",
                     "Current desired replica count for HPA objects.", {"namespace", "hpa_name"});
  metrics::Family& horizontal_pod_autoscaler_metric_computation_duration_seconds =
      metrics::Histograms("horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
                          "The time(seconds) that the HPA controller takes to calculate one metric.",
                          metrics::ExponentialBuckets(0.001, 2, 15), {"action", "error", "metric_type"});
  metrics::Family& horizontal_pod_autoscaler_metric_computation_total =
      metrics::Counter("horizontal_pod_autoscaler_controller_metric_computation_total",
                       "Number of metric computations.", {"action", "error", "metric_type"});
  metrics::Family& horizontal_pod_autoscaler_num =
      metrics::Gauge("horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
                     "Current number of controlled HPA objects.");
  metrics::Family& horizontal_pod_autoscaler_reconciliation_duration_seconds =
      metrics::Histograms("horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
                          "The time(seconds) that the HPA controller takes to reconcile once.",
                          metrics::ExponentialBuckets(0.001, 2, 15), {"action", "error"});
  metrics::Family& horizontal_pod_autoscaler_reconciliations_total =
      metrics::Counter("horizontal_pod_autoscaler_controller_reconciliations_total",
                       "Number of reconciliations of HPA controller.", {"action", "error"});
  metrics::Family& job_job_finished_indexes_total = metrics::Counter(
      "job_controller_job_finished_indexes_total",
      "The number of finished indexes. Possible values for the status label are: \"succeeded\", "
      "\"failed\". Possible values for the backoffLimit label are: \"perIndex\" and \"global\"",
      {"status", "backoffLimit"});
  metrics::Family& job_job_pods_creation_total =
      metrics::Counter("job_controller_job_pods_creation_total",
                       "The number of Pods created by the Job controller labelled with a reason for the Pod "
                       "creation, and with whether it succeeded.",
                       {"reason", "status"});
  metrics::Family& job_job_pods_finished_total =
      metrics::Counter("job_controller_job_pods_finished_total",
                       "The number of finished Pods that are fully tracked", {"completion_mode", "result"});
  metrics::Family& job_job_sync_duration_seconds =
      metrics::Histograms("job_controller_job_sync_duration_seconds", "The time it took to sync a job",
                          metrics::ExponentialBuckets(0.004, 2, 15), {"completion_mode", "result", "action"});
  metrics::Family& job_job_syncs_total = metrics::Counter(
      "job_controller_job_syncs_total", "The number of job syncs", {"completion_mode", "result", "action"});
  metrics::Family& job_jobs_by_external_controller_total =
      metrics::Counter("job_controller_jobs_by_external_controller_total",
                       "The number of Jobs managed by an external controller", {"controller_name"});
  metrics::Family& job_jobs_finished_total =
      metrics::Counter("job_controller_jobs_finished_total", "The number of finished jobs",
                       {"completion_mode", "result", "reason"});
  metrics::Family& job_pod_failures_handled_by_failure_policy_total =
      metrics::Counter("job_controller_pod_failures_handled_by_failure_policy_total",
                       "The number of failed Pods handled by failure policy with respect to the failure "
                       "policy action applied based on the matched rule.",
                       {"action"});
  metrics::Family& job_stale_sync_skips_total = metrics::Counter(
      "job_controller_stale_sync_skips_total",
      "Total number of syncs of jobs skipped because the cache did not show the last write yet.",
      {"group", "resource"});
  metrics::Family& job_terminated_pods_tracking_finalizer_total =
      metrics::Counter("job_controller_terminated_pods_tracking_finalizer_total",
                       "The number of terminated pods (phase=Failed|Succeeded) that have the finalizer "
                       "batch.kubernetes.io/job-tracking. The event label can be \"add\" or \"delete\".",
                       {"event"});
  metrics::Family& node_collector_evictions_total = metrics::Counter(
      "node_collector_evictions_total",
      "Number of Node evictions that happened since current instance of NodeController started.", {"zone"});
  metrics::Family& node_collector_unhealthy_nodes_in_zone =
      metrics::Gauge("node_collector_unhealthy_nodes_in_zone",
                     "Gauge measuring number of not Ready Nodes per zones.", {"zone"});
  metrics::Family& node_collector_update_node_health_duration_seconds =
      metrics::Histograms("node_collector_update_node_health_duration_seconds",
                          "Duration in seconds for NodeController to update the health of a single node.",
                          metrics::ExponentialBuckets(0.001, 4, 8));
  metrics::Family& node_collector_zone_health = metrics::Gauge(
      "node_collector_zone_health", "Gauge measuring percentage of healthy nodes per zone.", {"zone"});
  metrics::Family& node_collector_zone_size = metrics::Gauge(
      "node_collector_zone_size", "Gauge measuring number of registered Nodes per zones.", {"zone"});
  metrics::Family& node_ipam_cidrset_allocation_tries_per_request =
      metrics::Histograms("node_ipam_controller_cidrset_allocation_tries_per_request",
                          "Histogram measuring CIDR allocation tries per request.",
                          metrics::ExponentialBuckets(1, 5, 5), {"clusterCIDR"});
  metrics::Family& node_ipam_cidrset_cidrs_allocations_total =
      metrics::Counter("node_ipam_controller_cidrset_cidrs_allocations_total",
                       "Counter measuring total number of CIDR allocations.", {"clusterCIDR"});
  metrics::Family& node_ipam_cidrset_cidrs_releases_total =
      metrics::Counter("node_ipam_controller_cidrset_cidrs_releases_total",
                       "Counter measuring total number of CIDR releases.", {"clusterCIDR"});
  metrics::Family& node_ipam_cidrset_usage_cidrs =
      metrics::Gauge("node_ipam_controller_cidrset_usage_cidrs",
                     "Gauge measuring percentage of allocated CIDRs.", {"clusterCIDR"});
  // Upstream's spelling.
  metrics::Family& node_ipam_cirdset_max_cidrs =
      metrics::Gauge("node_ipam_controller_cirdset_max_cidrs",
                     "Maximum number of CIDRs that can be allocated.", {"clusterCIDR"});
  metrics::Family& pod_gc_collector_force_delete_pod_errors_total = metrics::Counter(
      "pod_gc_collector_force_delete_pod_errors_total",
      "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
      {"namespace", "reason"});
  metrics::Family& pod_gc_collector_force_delete_pods_total = metrics::Counter(
      "pod_gc_collector_force_delete_pods_total",
      "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
      {"namespace", "reason"});
  metrics::Family& pv_collector_bound_pv_count =
      metrics::Gauge("pv_collector_bound_pv_count",
                     "Gauge measuring number of persistent volume currently bound", {"storage_class"});
  metrics::Family& pv_collector_bound_pvc_count = metrics::Gauge(
      "pv_collector_bound_pvc_count", "Gauge measuring number of persistent volume claim currently bound",
      {"namespace", "storage_class", "volume_attributes_class"});
  metrics::Family& pv_collector_total_pv_count =
      metrics::Gauge("pv_collector_total_pv_count", "Gauge measuring total number of persistent volumes",
                     {"plugin_name", "volume_mode"});
  metrics::Family& pv_collector_unbound_pv_count =
      metrics::Gauge("pv_collector_unbound_pv_count",
                     "Gauge measuring number of persistent volume currently unbound", {"storage_class"});
  metrics::Family& pv_collector_unbound_pvc_count = metrics::Gauge(
      "pv_collector_unbound_pvc_count", "Gauge measuring number of persistent volume claim currently unbound",
      {"namespace", "storage_class", "volume_attributes_class"});
  metrics::Family& replicaset_sorting_deletion_age_ratio =
      metrics::Histograms("replicaset_controller_sorting_deletion_age_ratio",
                          "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the "
                          "time). Should be <2.",
                          metrics::ExponentialBuckets(0.25, 2, 6));
  metrics::Family& resource_claim_creates_total = metrics::Counter(
      "resourceclaim_controller_creates_total",
      "Number of ResourceClaims creation requests, categorized by creation status and admin access",
      {"status", "admin_access"});
  metrics::Family& resource_claims = metrics::Gauge(
      "resourceclaim_controller_resource_claims",
      "Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can be "
      "'resource_claim_template' (created from a template), 'extended_resource' (extended resources), or "
      "empty "
      "(manually created by a user).",
      {"allocated", "admin_access", "source"});
  metrics::Family& retroactive_storageclass_errors_total = metrics::Counter(
      "retroactive_storageclass_errors_total",
      "Total number of failed retroactive StorageClass assignments to persistent volume claim");
  metrics::Family& retroactive_storageclass_total =
      metrics::Counter("retroactive_storageclass_total",
                       "Total number of retroactive StorageClass assignments to persistent volume claim");
  metrics::Family& root_ca_cert_publisher_sync_duration_seconds =
      metrics::Histograms("root_ca_cert_publisher_sync_duration_seconds",
                          "Number of namespace syncs happened in root ca cert publisher.",
                          metrics::ExponentialBuckets(0.001, 2, 15), {"code"});
  metrics::Family& root_ca_cert_publisher_sync_total =
      metrics::Counter("root_ca_cert_publisher_sync_total",
                       "Number of namespace syncs happened in root ca cert publisher.", {"code"});
  metrics::Family& running_controllers =
      metrics::Gauge("running_managed_controllers",
                     "Indicates where instances of a controller are currently running", {"name", "manager"});
  metrics::Family& statefulset_stale_sync_skips_total = metrics::Counter(
      "statefulset_controller_stale_sync_skips_total",
      "Total number of syncs of StatefulSets skipped because the cache did not show the last write yet.",
      {"group", "resource"});
  metrics::Family& statefulset_max_unavailable =
      metrics::Gauge("statefulset_controller_statefulset_max_unavailable",
                     "Maximum number of unavailable pods that a StatefulSet may have.",
                     {"statefulset_namespace", "statefulset_name", "pod_management_policy"});
  metrics::Family& statefulset_unavailable_replicas =
      metrics::Gauge("statefulset_controller_statefulset_unavailable_replicas",
                     "Number of unavailable pods that a StatefulSet has.",
                     {"statefulset_namespace", "statefulset_name", "pod_management_policy"});
  metrics::Family& taint_eviction_pod_deletion_duration_seconds =
      metrics::Histograms("taint_eviction_controller_pod_deletion_duration_seconds",
                          "Latency, in seconds, between the time when a taint effect has been activated for "
                          "the Pod and its deletion via TaintEvictionController.",
                          {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240});
  metrics::Family& taint_eviction_pod_deletions_total =
      metrics::Counter("taint_eviction_controller_pod_deletions_total",
                       "Total number of Pods deleted by TaintEvictionController since its start.");
  metrics::Family& ttl_after_finished_job_deletion_duration_seconds =
      metrics::Histograms("ttl_after_finished_controller_job_deletion_duration_seconds",
                          "The time it took to delete the job since it became eligible for deletion",
                          metrics::ExponentialBuckets(0.1, 2, 14));
  metrics::Family& attachdetach_total_volumes =
      metrics::Gauge("attachdetach_controller_total_volumes", "Number of volumes in A/D Controller",
                     {"plugin_name", "state"});
  metrics::Family& attachable_volumes_in_use =
      metrics::Gauge("storage_count_attachable_volumes_in_use", "Measure number of volumes in use",
                     {"node", "volume_plugin"});
};
Metrics& TheMetrics();

}  // namespace keelson::controllers
