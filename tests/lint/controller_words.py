#!/usr/bin/env python3
"""What controllers tell operators, held against kube-controller-manager's words: reasons of events and names of metrics.

Alerts and dashboards go by these. For each folder of controlplane/controllers the tables below list upstream's; those
that have no sense here, or are not counted, stand in LEFT_OUT with the reason. A word of ours that upstream does not
have fails as well.

Every controller that is run is also made by some test through TestCluster, which holds it to its account's role.

usage: controller_words.py SOURCE_DIR
"""
import pathlib
import re
import sys

PODS = "SuccessfulCreate FailedCreate SuccessfulDelete FailedDelete"  # pod_control.cc says them

EVENTS = {
    "attachdetach": "FailedAttachVolume SuccessfulAttachVolume",
    "bootstraptokens": "",
    "certificates": "",
    "clusterroleaggregation": "",
    "cronjob": "InvalidSchedule UnparseableSchedule UnknownTimeZone MissSchedule TooManyMissedTimes JobAlreadyActive "
               "SawCompletedJob UnexpectedJob MissingJob FailedGet SuccessfulCreate FailedCreate SuccessfulDelete FailedDelete",
    "daemonset": "SelectingAll FailedDaemonPod SucceededDaemonPod FailedPlacement " + PODS,
    "deployment": "SelectingAll ScalingReplicaSet ReplicaSetCreateError DeploymentRollback "
                  "DeploymentRollbackRevisionNotFound DeploymentRollbackTemplateUnchanged",
    "disruption": "NoPods CalculateExpectedPodCountFailed NotDeleted UnmanagedPods",
    "endpoints": "FailedToCreateEndpoint FailedToUpdateEndpoint FailedToUpdateEndpointSlices FailedToListPods "
                 "FailedToListEndpointSlices TopologyAwareHintsEnabled TopologyAwareHintsDisabled",
    "ephemeralvolume": "FailedBinding",
    "garbagecollector": "OwnerRefInvalidNamespace",
    "job": "Completed Suspended Resumed TooManySucceededPods TooManyActivePods BackoffLimitExceeded " + PODS,
    "loadbalancer": "EnsuringLoadBalancer EnsuredLoadBalancer DeletingLoadBalancer DeletedLoadBalancer UpdatedLoadBalancer "
                    "UnAvailableLoadBalancer SyncLoadBalancerFailed UpdateLoadBalancerFailed Type LoadbalancerIP ExternalIP "
                    "LoadBalancerSourceRanges ExternalTrafficPolicy HealthCheckNodePort",
    "mirroring": "TooManyAddressesToMirror InvalidIPAddress FailedToListEndpointSlices FailedToUpdateEndpointSlices",
    "namespaces": "",
    "node": "RegisteredNode RemovingNode NodeNotReady TaintManagerEviction CIDRNotAvailable CIDRAssignmentFailed",
    "podautoscaler": "FailedGetScale FailedRescale SuccessfulRescale FailedUpdateStatus FailedComputeMetricsReplicas "
                     "FailedGetObjectMetric FailedGetPodsMetric FailedGetResourceMetric FailedGetContainerResourceMetric "
                     "FailedGetExternalMetric SelectorRequired InvalidSelector AmbiguousSelector InvalidMetricSourceType",
    "replicaset": PODS,
    "resourcequota": "",
    "serviceaccounttokens": "",
    "servicecidrs": "",
    "statefulset": "SuccessfulCreate FailedCreate SuccessfulDelete FailedDelete SuccessfulUpdate FailedUpdate "
                   "RecreatingFailedPod RecreatingTerminatedPod",
    "storageprotection": "",
    "ttlafterfinished": "",
    "volumebinding": "FailedBinding WaitForFirstConsumer WaitForPodScheduled ExternalProvisioning ProvisioningFailed "
                     "VolumeMismatch ClaimLost ClaimMisbound VolumeFailedDelete VolumeFailedRecycle VolumeRecycled "
                     "VolumeDelete RecyclerPod",
    "volumeexpand": "ExternalExpanding",
}

METRICS = {
    "attachdetach": "attach_detach_controller_attachdetach_controller_forced_detaches attachdetach_controller_total_volumes "
                    "storage_count_attachable_volumes_in_use",
    "cronjob": "cronjob_controller_job_creation_skew_duration_seconds",
    "endpoints": "endpoint_slice_controller_changes endpoint_slice_controller_syncs "
                 "endpoint_slice_controller_endpoints_added_per_sync endpoint_slice_controller_endpoints_removed_per_sync "
                 "endpoint_slice_controller_endpoints_desired endpoint_slice_controller_num_endpoint_slices "
                 "endpoint_slice_controller_desired_endpoint_slices endpoint_slice_controller_endpointslices_changed_per_sync "
                 "endpoint_slice_controller_services_count_by_traffic_distribution",
    "ephemeralvolume": "ephemeral_volume_controller_create_total ephemeral_volume_controller_create_failures_total",
    "garbagecollector": "garbagecollector_controller_resources_sync_error_total",
    "job": "job_controller_job_sync_duration_seconds job_controller_job_syncs_total job_controller_jobs_finished_total "
           "job_controller_job_pods_finished_total job_controller_job_pods_creation_total "
           "job_controller_pod_failures_handled_by_failure_policy_total "
           "job_controller_terminated_pods_tracking_finalizer_total job_controller_job_finished_indexes_total "
           "job_controller_jobs_by_external_controller_total",
    "namespaces": "root_ca_cert_publisher_sync_total root_ca_cert_publisher_sync_duration_seconds",
    "node": "node_collector_zone_health node_collector_zone_size node_collector_unhealthy_nodes_in_zone "
            "node_collector_evictions_total node_collector_update_node_health_duration_seconds "
            "node_collector_update_all_nodes_health_duration_seconds pod_gc_collector_force_delete_pods_total "
            "pod_gc_collector_force_delete_pod_errors_total taint_eviction_controller_pod_deletions_total "
            "taint_eviction_controller_pod_deletion_duration_seconds node_ipam_controller_cidrset_usage_cidrs "
            "node_ipam_controller_cirdset_max_cidrs node_ipam_controller_cidrset_cidrs_allocations_total "
            "node_ipam_controller_cidrset_cidrs_releases_total node_ipam_controller_cidrset_allocation_tries_per_request",
    "podautoscaler": "horizontal_pod_autoscaler_controller_reconciliations_total "
                     "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds "
                     "horizontal_pod_autoscaler_controller_metric_computation_total "
                     "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
    "replicaset": "replicaset_controller_sorting_deletion_age_ratio",
    "ttlafterfinished": "ttl_after_finished_controller_job_deletion_duration_seconds",
    "volumebinding": "pv_collector_bound_pv_count pv_collector_unbound_pv_count pv_collector_bound_pvc_count "
                     "pv_collector_unbound_pvc_count pv_collector_total_pv_count",
}

LEFT_OUT = {
    # ---- events ----
    "FailedPlacement": "said of pods that the DaemonSet controller placed itself; the scheduler does",
    "FailedToListPods": "local stores do not fail",
    "FailedToListEndpointSlices": "as above",
    "TooManyActivePods": "a Job completes with no pod active",
    "UpdateLoadBalancerFailed": "of a cloud's API; what fails here is SyncLoadBalancerFailed",
    "Type": "tells a cloud's bill what the user has just asked for",
    "LoadbalancerIP": "as above",
    "ExternalIP": "as above",
    "LoadBalancerSourceRanges": "as above",
    "ExternalTrafficPolicy": "as above",
    "HealthCheckNodePort": "as above",
    "VolumeRecycled": "recycling is no more: a volume that asks for it fails with VolumeFailedRecycle",
    "VolumeDelete": "of deleters in the program; drivers delete",
    "RecyclerPod": "as VolumeRecycled",
    # ---- metrics ----
    "attachdetach_controller_total_volumes": "there is one state of the world, the API's",
    "storage_count_attachable_volumes_in_use": "VolumeAttachments say it",
    "garbagecollector_controller_resources_sync_error_total": "the kinds are known: nothing is discovered",
    "node_collector_update_all_nodes_health_duration_seconds": "nodes are looked at one by one",
    "node_ipam_controller_cidrset_allocation_tries_per_request": "the next free block is found without tries",
}

# Put together from parts in the code.
COMPOSED = {
    "SuccessfulUpdate": '"Successful" + reason', "FailedUpdate": '"Failed" + reason',
    "node_ipam_controller_cidrset_cidrs_allocations_total": '"node_ipam_controller_cidrset_cidrs_"',
    "node_ipam_controller_cidrset_cidrs_releases_total": '"node_ipam_controller_cidrset_cidrs_"',
}

RECORDED = re.compile(r'Record\([^;]*?"(?:Normal|Warning)",\s*"([A-Za-z]+)"(?!\s*\+)')
MEASURED = re.compile(r'metrics::(?:Counter|Gauge|Histograms)\(\s*"([a-z_]+)"(?!\s*\+)')


def text_of(folder):
    return "\n".join(path.read_text() for path in sorted(folder.glob("*")) if path.suffix in (".cc", ".h")
                     and not path.stem.endswith("_test"))


def untried(root):
    """Controllers that no test makes by TestCluster::Make."""
    run = set(re.findall(r"manager\.Add<(\w+)>", (root / "controllers.cc").read_text()))
    tests = [path for path in root.rglob("*") if path.name.endswith(("_test.cc", "_world.cc", "testing.h"))]
    made = {name for path in tests for name in re.findall(r"\bMake<(\w+)>", path.read_text())}
    if not run:
        yield "no controller is run"
    for name in sorted(run - made):
        yield f"{name}: no test makes it, so nothing holds it to its role"


def differences(words, text, said):
    """`said`: what the code says in so many words, which is not all of it."""
    for word in words:
        if word in said and word in LEFT_OUT:
            yield f"{word} is said, and listed as left out"
        there = f'"{word}"' in text or COMPOSED.get(word, "\0") in text
        if not there and word not in LEFT_OUT:
            yield f"{word} is not said"
    for word in sorted(said - set(words)):
        yield f"{word} is not upstream's"


def main():
    root = pathlib.Path(sys.argv[1]) / "controlplane/controllers"
    shared = "\n".join(path.read_text() for path in root.glob("*.cc") if not path.stem.endswith("_test"))
    problems = []
    folders = {path.name: path for path in root.iterdir() if path.is_dir() and path.name != "faults"}
    for name in sorted(folders.keys() - EVENTS.keys()):
        problems.append(f"{name}: a controller without a list of events")
    for name in sorted(EVENTS.keys() & folders.keys()):
        text = text_of(folders[name])
        events, metrics = EVENTS[name].split(), METRICS.get(name, "").split()
        problems += [f"{name}: event {what}" for what in differences(events, text + shared, set(RECORDED.findall(text)))]
        problems += [f"{name}: metric {what}" for what in differences(metrics, text, set(MEASURED.findall(text)))]
    problems += untried(root)
    listed = {word for table in (EVENTS, METRICS) for words in table.values() for word in words.split()}
    problems += [f"{word} is left out of no list" for word in sorted(LEFT_OUT.keys() - listed)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
