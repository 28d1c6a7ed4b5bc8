#include "controlplane/options/flags_without_effect.h"

namespace keelson::controlplane {
namespace {

using Kind = component::FlagWithoutEffect::Kind;
constexpr Kind kSwitch = Kind::kSwitch, kText = Kind::kText, kList = Kind::kList, kNumber = Kind::kNumber,
               kDuration = Kind::kDuration;

constexpr std::string_view kCloud = "there are no cloud providers in this program",
                           kRecycler = "volumes are not recycled: the policy Recycle is deprecated",
                           kAtOnce = "changes are written at once, and what comes meanwhile with them",
                           kEvents = "controllers follow every change and do not look again after a time",
                           kVersions = "only the behaviour of 1.36 is there",
                           kGoProfiles = "this program is not written in Go, and has no such profiles",
                           kLogs = "each line is written to standard error at once",
                           kMetrics = "all metrics are served as they are",
                           kElection =
                               "leaders are not elected by the server: CoordinatedLeaderElection is off",
                           kEtcdHealth = "etcd is looked at by the watch that all reads depend on";

// Sorted by name.
constexpr component::FlagWithoutEffect kFlags[] = {
    {"allow-metric-labels", kList, "", kMetrics},
    {"allow-metric-labels-manifest", kText, "", kMetrics},
    {"apiserver-count", kNumber, "1", "the endpoints of the kubernetes Service are not counted"},
    {"attach-detach-reconcile-sync-period", kDuration, "1m0s", kEvents},
    {"cert-dir", kText, "", "a certificate that is not given is made in memory, or is missing"},
    {"cidr-allocator-type", kText, "RangeAllocator", kCloud},
    {"cloud-config", kText, "", kCloud},
    {"cloud-provider", kText, "external", kCloud},
    {"cluster-name", kText, "kubernetes", "it names resources at a cloud provider, and there are none"},
    {"concurrent-device-taint-eviction-syncs", kNumber, "8", "there is no such controller"},
    {"configure-cloud-routes", kSwitch, "true", kCloud},
    {"contention-profiling", kSwitch, "false", kGoProfiles},
    {"controller-shutdown-timeout", kDuration, "10s", "controllers end when their current writes do"},
    {"controller-start-interval", kDuration, "0s", "controllers start together"},
    {"coordinated-leadership-lease-duration", kDuration, "15s", kElection},
    {"coordinated-leadership-renew-deadline", kDuration, "10s", kElection},
    {"coordinated-leadership-retry-period", kDuration, "2s", kElection},
    {"debug-socket-path", kText, "", kGoProfiles},
    {"default-watch-cache-size", kNumber, "100", "each resource's history has the same bounds"},
    {"delete-collection-workers", kNumber, "1", "a collection is deleted one object after the other"},
    {"disable-attach-detach-reconcile-sync", kSwitch, "false", kEvents},
    {"egress-selector-config-file", kText, "", "connections are made directly"},
    {"emulated-version", kList, "kube=1.36", kVersions},
    {"emulation-forward-compatible", kSwitch, "false", kVersions},
    {"enable-dynamic-provisioning", kSwitch, "true", "claims always wait for their class's provisioner"},
    {"enable-hostpath-provisioner", kSwitch, "false", "there is no provisioner in this program"},
    {"enable-leader-migration", kSwitch, "false", kCloud},
    {"enable-logs-handler", kSwitch, "false", "log files are not served"},
    {"endpoint-updates-batch-period", kDuration, "0s", kAtOnce},
    {"endpointslice-updates-batch-period", kDuration, "0s", kAtOnce},
    {"etcd-count-metric-poll-period", kDuration, "1m0s", "objects are counted when /metrics is read"},
    {"etcd-db-metric-poll-interval", kDuration, "30s", kEtcdHealth},
    {"etcd-healthcheck-timeout", kDuration, "2s", kEtcdHealth},
    {"etcd-readycheck-timeout", kDuration, "2s", kEtcdHealth},
    {"external-cloud-volume-plugin", kText, "", kCloud},
    {"flex-volume-plugin-dir", kText, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
     "there are no FlexVolumes"},
    {"kube-api-burst", kNumber, "", "the API server's own limits decide (API Priority and Fairness)"},
    {"kube-api-content-type", kText, "application/vnd.kubernetes.protobuf", "it is always protobuf"},
    {"kube-api-qps", kNumber, "", "the API server's own limits decide (API Priority and Fairness)"},
    {"kubelet-port", kNumber, "10250", "a node's own status says its kubelet's port"},
    {"leader-migration-config", kText, "", kCloud},
    {"lease-reuse-duration-seconds", kNumber, "60", "leases of etcd are shared as far as lifetimes allow"},
    {"livez-grace-period", kDuration, "0s", "/livez shows from the beginning what is not finished"},
    {"log-flush-frequency", kDuration, "5s", kLogs},
    {"log-json-info-buffer-size", kText, "0", kLogs},
    {"log-json-split-stream", kSwitch, "false", kLogs},
    {"log-text-info-buffer-size", kText, "0", kLogs},
    {"log-text-split-stream", kSwitch, "false", kLogs},
    {"max-connection-bytes-per-sec", kNumber, "0", "connections are not throttled"},
    {"min-compatibility-version", kList, "kube=1.35", kVersions},
    {"min-resync-period", kDuration, "12h0m0s", kEvents},
    {"mirroring-endpointslice-updates-batch-period", kDuration, "0s", kAtOnce},
    {"namespace-sync-period", kDuration, "5m0s", kEvents},
    {"permit-address-sharing", kSwitch, "true", "it is always so (SO_REUSEADDR)"},
    {"pv-recycler-increment-timeout-nfs", kNumber, "30", kRecycler},
    {"pv-recycler-minimum-timeout-hostpath", kNumber, "60", kRecycler},
    {"pv-recycler-minimum-timeout-nfs", kNumber, "300", kRecycler},
    {"pv-recycler-pod-template-filepath-hostpath", kText, "", kRecycler},
    {"pv-recycler-pod-template-filepath-nfs", kText, "", kRecycler},
    {"pv-recycler-timeout-increment-hostpath", kNumber, "30", kRecycler},
    {"pvclaimbinder-sync-period", kDuration, "15s", kEvents},
    {"route-reconciliation-period", kDuration, "10s", kCloud},
    {"runtime-config-emulation-forward-compatible", kSwitch, "false", kVersions},
    {"service-account-signing-endpoint", kText, "",
     "tokens are signed with --service-account-signing-key-file alone"},
    {"show-hidden-metrics-for-version", kText, "", "no metric is hidden"},
    {"shutdown-send-retry-after", kSwitch, "false", "connections are closed when the server ends"},
    {"shutdown-watch-termination-grace-period", kDuration, "0s", "watches end at once with a proper end"},
    {"storage-initialization-timeout", kDuration, "1m0s", "the server is ready once all caches are filled"},
    {"tracing-config-file", kText, "", "requests are not traced"},
    {"vmodule", kList, "", "-v sets the level of all messages"},
    {"watch-cache", kSwitch, "true", "all reads come from the watch cache"},
    {"watch-cache-sizes", kList, "", "each resource's history has the same bounds"},
};

}  // namespace

component::FlagsWithoutEffect FlagsWithoutEffect() { return kFlags; }

}  // namespace keelson::controlplane
