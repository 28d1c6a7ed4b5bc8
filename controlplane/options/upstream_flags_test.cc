// Every flag of Kubernetes 1.36's three programs is taken, and those that kubeadm writes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "controlplane/options/flags.h"
#include "lib/base/file.h"
#include "lib/component/testing/flags.h"

namespace keelson::controlplane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// As --help of each lists them.
constexpr const char* kApiServer[] = {
    "admission-control-config-file",
    "advertise-address",
    "aggregator-reject-forwarding-redirect",
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "allow-privileged",
    "anonymous-auth",
    "api-audiences",
    "audit-log-batch-buffer-size",
    "audit-log-batch-max-size",
    "audit-log-batch-max-wait",
    "audit-log-batch-throttle-burst",
    "audit-log-batch-throttle-enable",
    "audit-log-batch-throttle-qps",
    "audit-log-compress",
    "audit-log-format",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "audit-log-mode",
    "audit-log-path",
    "audit-log-truncate-enabled",
    "audit-log-truncate-max-batch-size",
    "audit-log-truncate-max-event-size",
    "audit-log-version",
    "audit-policy-file",
    "audit-webhook-batch-buffer-size",
    "audit-webhook-batch-max-size",
    "audit-webhook-batch-max-wait",
    "audit-webhook-batch-throttle-burst",
    "audit-webhook-batch-throttle-enable",
    "audit-webhook-batch-throttle-qps",
    "audit-webhook-config-file",
    "audit-webhook-initial-backoff",
    "audit-webhook-mode",
    "audit-webhook-truncate-enabled",
    "audit-webhook-truncate-max-batch-size",
    "audit-webhook-truncate-max-event-size",
    "audit-webhook-version",
    "authentication-config",
    "authentication-token-webhook-cache-ttl",
    "authentication-token-webhook-config-file",
    "authentication-token-webhook-version",
    "authorization-config",
    "authorization-mode",
    "authorization-policy-file",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "contention-profiling",
    "coordinated-leadership-lease-duration",
    "coordinated-leadership-renew-deadline",
    "coordinated-leadership-retry-period",
    "cors-allowed-origins",
    "debug-socket-path",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "delete-collection-workers",
    "disable-admission-plugins",
    "disable-http2-serving",
    "disabled-metrics",
    "egress-selector-config-file",
    "emulated-version",
    "emulation-forward-compatible",
    "enable-admission-plugins",
    "enable-aggregator-routing",
    "enable-bootstrap-token-auth",
    "enable-garbage-collector",
    "enable-logs-handler",
    "enable-priority-and-fairness",
    "encryption-provider-config",
    "encryption-provider-config-automatic-reload",
    "endpoint-reconciler-type",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-compaction-interval",
    "etcd-count-metric-poll-period",
    "etcd-db-metric-poll-interval",
    "etcd-healthcheck-timeout",
    "etcd-keyfile",
    "etcd-prefix",
    "etcd-readycheck-timeout",
    "etcd-servers",
    "etcd-servers-overrides",
    "event-ttl",
    "external-hostname",
    "feature-gates",
    "goaway-chance",
    "help",
    "http2-max-streams-per-connection",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "kubelet-preferred-address-types",
    "kubelet-timeout",
    "kubernetes-service-node-port",
    "lease-reuse-duration-seconds",
    "livez-grace-period",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-json-split-stream",
    "log-text-info-buffer-size",
    "log-text-split-stream",
    "logging-format",
    "max-connection-bytes-per-sec",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "min-compatibility-version",
    "min-request-timeout",
    "oidc-ca-file",
    "oidc-client-id",
    "oidc-groups-claim",
    "oidc-groups-prefix",
    "oidc-issuer-url",
    "oidc-required-claim",
    "oidc-signing-algs",
    "oidc-username-claim",
    "oidc-username-prefix",
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "request-timeout",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "runtime-config",
    "runtime-config-emulation-forward-compatible",
    "secure-port",
    "service-account-extend-token-expiration",
    "service-account-issuer",
    "service-account-jwks-uri",
    "service-account-key-file",
    "service-account-lookup",
    "service-account-max-token-expiration",
    "service-account-signing-endpoint",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "service-node-port-range",
    "show-hidden-metrics-for-version",
    "shutdown-delay-duration",
    "shutdown-send-retry-after",
    "shutdown-watch-termination-grace-period",
    "storage-backend",
    "storage-initialization-timeout",
    "storage-media-type",
    "strict-transport-security-directives",
    "tls-cert-file",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tls-private-key-file",
    "tls-sni-cert-key",
    "token-auth-file",
    "tracing-config-file",
    "v",
    "version",
    "vmodule",
    "watch-cache",
    "watch-cache-sizes",
};
constexpr const char* kControllerManager[] = {
    "allocate-node-cidrs",
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "attach-detach-reconcile-sync-period",
    "authentication-kubeconfig",
    "authentication-skip-lookup",
    "authentication-token-webhook-cache-ttl",
    "authentication-tolerate-lookup-failure",
    "authorization-always-allow-paths",
    "authorization-kubeconfig",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "bind-address",
    "cert-dir",
    "cidr-allocator-type",
    "client-ca-file",
    "cloud-config",
    "cloud-provider",
    "cluster-cidr",
    "cluster-name",
    "cluster-signing-cert-file",
    "cluster-signing-duration",
    "cluster-signing-key-file",
    "cluster-signing-kube-apiserver-client-cert-file",
    "cluster-signing-kube-apiserver-client-key-file",
    "cluster-signing-kubelet-client-cert-file",
    "cluster-signing-kubelet-client-key-file",
    "cluster-signing-kubelet-serving-cert-file",
    "cluster-signing-kubelet-serving-key-file",
    "cluster-signing-legacy-unknown-cert-file",
    "cluster-signing-legacy-unknown-key-file",
    "concurrent-cron-job-syncs",
    "concurrent-daemonset-syncs",
    "concurrent-deployment-syncs",
    "concurrent-device-taint-eviction-syncs",
    "concurrent-endpoint-syncs",
    "concurrent-ephemeralvolume-syncs",
    "concurrent-gc-syncs",
    "concurrent-horizontal-pod-autoscaler-syncs",
    "concurrent-job-syncs",
    "concurrent-namespace-syncs",
    "concurrent-rc-syncs",
    "concurrent-replicaset-syncs",
    "concurrent-resource-claim-syncs",
    "concurrent-resource-quota-syncs",
    "concurrent-service-endpoint-syncs",
    "concurrent-service-syncs",
    "concurrent-serviceaccount-token-syncs",
    "concurrent-statefulset-syncs",
    "concurrent-ttl-after-finished-syncs",
    "concurrent-validating-admission-policy-status-syncs",
    "configure-cloud-routes",
    "contention-profiling",
    "controller-shutdown-timeout",
    "controller-start-interval",
    "controllers",
    "disable-attach-detach-reconcile-sync",
    "disable-force-detach-on-timeout",
    "disable-http2-serving",
    "disabled-metrics",
    "emulated-version",
    "enable-dynamic-provisioning",
    "enable-garbage-collector",
    "enable-hostpath-provisioner",
    "enable-leader-migration",
    "endpoint-updates-batch-period",
    "endpointslice-updates-batch-period",
    "external-cloud-volume-plugin",
    "feature-gates",
    "flex-volume-plugin-dir",
    "help",
    "horizontal-pod-autoscaler-cpu-initialization-period",
    "horizontal-pod-autoscaler-downscale-stabilization",
    "horizontal-pod-autoscaler-initial-readiness-delay",
    "horizontal-pod-autoscaler-sync-period",
    "horizontal-pod-autoscaler-tolerance",
    "http2-max-streams-per-connection",
    "kube-api-burst",
    "kube-api-content-type",
    "kube-api-qps",
    "kubeconfig",
    "large-cluster-size-threshold",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "leader-migration-config",
    "legacy-service-account-token-clean-up-period",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-json-split-stream",
    "log-text-info-buffer-size",
    "log-text-split-stream",
    "logging-format",
    "master",
    "max-endpoints-per-slice",
    "min-compatibility-version",
    "min-resync-period",
    "mirroring-concurrent-service-endpoint-syncs",
    "mirroring-endpointslice-updates-batch-period",
    "mirroring-max-endpoints-per-subset",
    "namespace-sync-period",
    "node-cidr-mask-size",
    "node-cidr-mask-size-ipv4",
    "node-cidr-mask-size-ipv6",
    "node-eviction-rate",
    "node-monitor-grace-period",
    "node-monitor-period",
    "node-startup-grace-period",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "pv-recycler-increment-timeout-nfs",
    "pv-recycler-minimum-timeout-hostpath",
    "pv-recycler-minimum-timeout-nfs",
    "pv-recycler-pod-template-filepath-hostpath",
    "pv-recycler-pod-template-filepath-nfs",
    "pv-recycler-timeout-increment-hostpath",
    "pvclaimbinder-sync-period",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "resource-quota-sync-period",
    "root-ca-file",
    "route-reconciliation-period",
    "secondary-node-eviction-rate",
    "secure-port",
    "service-account-private-key-file",
    "service-cluster-ip-range",
    "show-hidden-metrics-for-version",
    "terminated-pod-gc-threshold",
    "tls-cert-file",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tls-private-key-file",
    "tls-sni-cert-key",
    "unhealthy-zone-threshold",
    "use-service-account-credentials",
    "v",
    "version",
    "vmodule",
};
constexpr const char* kScheduler[] = {
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "authentication-kubeconfig",
    "authentication-skip-lookup",
    "authentication-token-webhook-cache-ttl",
    "authentication-tolerate-lookup-failure",
    "authorization-always-allow-paths",
    "authorization-kubeconfig",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "config",
    "contention-profiling",
    "disable-http2-serving",
    "disabled-metrics",
    "emulated-version",
    "feature-gates",
    "help",
    "http2-max-streams-per-connection",
    "kube-api-burst",
    "kube-api-content-type",
    "kube-api-qps",
    "kubeconfig",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-json-split-stream",
    "log-text-info-buffer-size",
    "log-text-split-stream",
    "logging-format",
    "master",
    "min-compatibility-version",
    "permit-address-sharing",
    "permit-port-sharing",
    "pod-max-in-unschedulable-pods-duration",
    "profiling",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "secure-port",
    "show-hidden-metrics-for-version",
    "tls-cert-file",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tls-private-key-file",
    "tls-sni-cert-key",
    "v",
    "version",
    "vmodule",
    "write-config-to",
};

// Deprecated, and hidden from --help.
constexpr const char* kHidden[] = {"apiserver-count", "default-watch-cache-size", "kubelet-port"};

TEST(UpstreamFlags, AreTaken) {
  Options options;
  CLI::App app;
  app.set_version_flag("--version", "");
  AddFlags(app, options);
  std::vector<std::string> missing;
  const auto look = [&](const auto& names) {
    for (const char* name : names) {
      if (!app.get_option_no_throw(std::string("--") + name)) missing.emplace_back(name);
    }
  };
  look(kApiServer);
  look(kControllerManager);
  look(kScheduler);
  look(kHidden);
  EXPECT_THAT(missing, IsEmpty());
}

// The table of flags without effect contains upstream flags only.
TEST(UpstreamFlags, AreAllThatHaveNoEffect) {
  std::set<std::string_view> theirs;
  const auto add = [&](const auto& names) { theirs.insert(std::begin(names), std::end(names)); };
  add(kApiServer);
  add(kControllerManager);
  add(kScheduler);
  add(kHidden);
  for (const component::FlagWithoutEffect& flag : FlagsWithoutEffect()) {
    EXPECT_TRUE(theirs.count(flag.name)) << flag.name;
  }
}

// The arguments of a manifest's container.
std::vector<std::string> ArgumentsOf(const std::string& file) {
  std::istringstream in(ReadFile(KEELSON_SOURCE "/tests/kubeadm/manifests/" + file).value_or(""));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kItem = "    - --";
    if (line.starts_with(kItem)) out.push_back(line.substr(kItem.size() - 2));
  }
  return out;
}

TEST(UpstreamFlags, OfKubeadmMeanWhatTheySay) {
  const struct {
    const char *role, *file;
    size_t flags;
  } cases[] = {{"apiserver", "kube-apiserver.yaml", 27},
               {"controllers", "kube-controller-manager.yaml", 17},
               {"scheduler", "kube-scheduler.yaml", 5}};
  for (const auto& c : cases) {
    std::vector<std::string> arguments = ArgumentsOf(c.file);
    EXPECT_EQ(arguments.size(), c.flags) << c.file;
    arguments.push_back(std::string("--roles=") + c.role);
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    ASSERT_FALSE(ParseFlags(app, arguments, told, told)) << c.file << ": " << told.str();
    FinishOptions(app, options);
    EXPECT_THAT(options.without_effect, IsEmpty()) << "kubeadm asks for nothing that is not here";
    if (options.Has("apiserver")) {
      EXPECT_TRUE(options.allow_privileged);
      EXPECT_THAT(options.kubelet_address_types, ElementsAre("InternalIP", "ExternalIP", "Hostname"));
      EXPECT_EQ(options.proxy_certificate_file, "/etc/kubernetes/pki/front-proxy-client.crt");
      EXPECT_EQ(options.secure_port, 6443);
    } else {
      EXPECT_EQ(options.secure_port, options.Has("scheduler") ? 10259 : 10257);
      EXPECT_EQ(options.bind_address, "127.0.0.1");
    }
  }
}

TEST(UpstreamFlags, OfAllRolesGoTogether) {
  std::set<std::string> all = {"--config=/s.yaml", "--cloud-provider=external"};
  for (const char* file : {"kube-apiserver.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml"}) {
    for (std::string& argument : ArgumentsOf(file)) {
      const bool per_role = argument.find(".conf") != std::string::npos;
      if (!per_role) all.insert(std::move(argument));
    }
  }
  Options options;
  CLI::App app;
  AddFlags(app, options);
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(app, std::vector<std::string>(all.begin(), all.end()), told, told)) << told.str();
  EXPECT_EQ(options.scheduler_config_file, "/s.yaml");
}

TEST(UpstreamFlags, GivenTwiceTheLastCounts) {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  std::ostringstream told;
  ASSERT_FALSE(
      ParseFlags(app, {"--secure-port=1", "--secure-port=2", "--event-ttl=1h", "--event-ttl=2h"}, told, told))
      << told.str();
  EXPECT_EQ(options.secure_port, 2);
  EXPECT_EQ(options.event_ttl, std::chrono::hours(2));
}

}  // namespace
}  // namespace keelson::controlplane
