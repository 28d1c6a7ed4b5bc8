#!/usr/bin/env python3
"""Compares the event reasons of the controllers with those of kube-controller-manager.

Alerts and dashboards match on event reasons. EVENTS lists upstream's reasons for each folder of
controlplane/controllers; LEFT_OUT lists those that do not apply here, with the cause. A reason that upstream does not
have is an error too.

Also checks that a test creates each controller through TestCluster, which checks its requests against its role.

usage: controller_words.py SOURCE_DIR
"""
import pathlib
import re
import sys

PODS = "SuccessfulCreate FailedCreate SuccessfulDelete FailedDelete"  # recorded by common/pod_control.cc

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
    "resourceclaim": "FailedResourceClaimCreation",
    "resourcequota": "",
    "serviceaccounttokens": "",
    "servicecidrs": "",
    "statefulset": "SuccessfulCreate FailedCreate SuccessfulDelete FailedDelete SuccessfulUpdate FailedUpdate "
                   "RecreatingFailedPod RecreatingTerminatedPod",
    "storageprotection": "",
    "storageversionmigrator": "",
    "ttlafterfinished": "",
    "validatingadmissionpolicystatus": "",
    "volumebinding": "FailedBinding WaitForFirstConsumer WaitForPodScheduled ExternalProvisioning ProvisioningFailed "
                     "VolumeMismatch ClaimLost ClaimMisbound VolumeFailedDelete VolumeFailedRecycle VolumeRecycled "
                     "VolumeDelete RecyclerPod",
    "volumeexpand": "ExternalExpanding",
}

LEFT_OUT = {
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
}

# Reasons that the code composes from parts.
COMPOSED = {
    "SuccessfulUpdate": '"Successful" + reason', "FailedUpdate": '"Failed" + reason',
}

SHARED = {"common", "faults", "testing"}  # folders without a controller

RECORDED = re.compile(r'Record\([^;]*?"(?:Normal|Warning)",\s*"([A-Za-z]+)"(?!\s*\+)')


def text_of(folder):
    return "\n".join(path.read_text() for path in sorted(folder.glob("*")) if path.suffix in (".cc", ".h")
                     and not path.stem.endswith("_test"))


def untried(root):
    """Yields the controllers that no test creates through TestCluster::Make."""
    run = set(re.findall(r"manager\.Add<(\w+)>", (root / "controllers.cc").read_text()))
    tests = [path for path in root.rglob("*") if path.name.endswith(("_test.cc", "_world.cc", "testing.h"))]
    made = {name for path in tests for name in re.findall(r"\bMake<(\w+)>", path.read_text())}
    if not run:
        yield "no controller is run"
    for name in sorted(run - made):
        yield f"{name}: no test makes it, so nothing holds it to its role"


def differences(words, text, said):
    """Yields the differences between upstream's `words` and the code. `said`: the reasons that are string literals in calls."""
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
    shared = text_of(root) + text_of(root / "common")
    problems = []
    folders = {path.name: path for path in root.iterdir() if path.is_dir() and path.name not in SHARED}
    for name in sorted(folders.keys() - EVENTS.keys()):
        problems.append(f"{name}: a controller without a list of events")
    for name in sorted(EVENTS.keys() & folders.keys()):
        text = text_of(folders[name])
        said = set(RECORDED.findall(text))
        problems += [f"{name}: event {what}" for what in differences(EVENTS[name].split(), text + shared, said)]
    problems += untried(root)
    listed = {word for words in EVENTS.values() for word in words.split()}
    problems += [f"{word} is left out of no list" for word in sorted(LEFT_OUT.keys() - listed)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
