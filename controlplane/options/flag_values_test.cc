// Each flag sets the option that its component reads. What an option does is held by the component's tests, and
// by tests/controlplane where only the whole program shows it.
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <sstream>

#include "controlplane/options/flags.h"
#include "lib/component/flags.h"

namespace keelson::controlplane {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Words = std::vector<std::string>;

struct Case {
  const char* flag;
  bool (*is_set)(const Options&);
};

constexpr Case kCases[] = {
    // Audit.
    {"--audit-log-batch-buffer-size=7", [](const Options& o) { return o.audit.log_batch.buffer_size == 7; }},
    {"--audit-log-batch-max-size=7", [](const Options& o) { return o.audit.log_batch.max_size == 7; }},
    {"--audit-log-batch-max-wait=7s", [](const Options& o) { return o.audit.log_batch.max_wait == "7s"; }},
    {"--audit-log-batch-throttle-burst=7",
     [](const Options& o) { return o.audit.log_batch.throttle_burst == 7; }},
    {"--audit-log-batch-throttle-enable", [](const Options& o) { return o.audit.log_batch.throttle; }},
    {"--audit-log-batch-throttle-qps=0.5",
     [](const Options& o) { return o.audit.log_batch.throttle_qps == 0.5; }},
    {"--audit-log-compress", [](const Options& o) { return o.audit.log_compress; }},
    {"--audit-log-maxage=7", [](const Options& o) { return o.audit.log_max_age_days == 7; }},
    {"--audit-log-maxbackup=7", [](const Options& o) { return o.audit.log_max_backups == 7; }},
    {"--audit-log-maxsize=7", [](const Options& o) { return o.audit.log_max_megabytes == 7; }},
    {"--audit-log-mode=batch", [](const Options& o) { return o.audit.log_batch.mode == "batch"; }},
    {"--audit-log-truncate-enabled", [](const Options& o) { return o.audit.log_batch.truncate; }},
    {"--audit-log-truncate-max-batch-size=7",
     [](const Options& o) { return o.audit.log_batch.truncate_max_batch == 7; }},
    {"--audit-log-truncate-max-event-size=7",
     [](const Options& o) { return o.audit.log_batch.truncate_max_event == 7; }},
    {"--audit-webhook-initial-backoff=7s",
     [](const Options& o) { return o.audit.webhook_initial_backoff == "7s"; }},
    {"--audit-webhook-mode=blocking",
     [](const Options& o) { return o.audit.webhook_batch.mode == "blocking"; }},
    {"--audit-webhook-batch-max-size=7",
     [](const Options& o) { return o.audit.webhook_batch.max_size == 7; }},
    {"--audit-webhook-batch-throttle-enable=false",
     [](const Options& o) { return !o.audit.webhook_batch.throttle; }},

    // Authentication and authorization.
    {"--anonymous-auth=false", [](const Options& o) { return !o.auth.anonymous_auth; }},
    {"--authentication-token-webhook-cache-ttl=7s",
     [](const Options& o) { return o.auth.token_webhook_cache_ttl == "7s"; }},
    {"--authentication-token-webhook-config-file=/f",
     [](const Options& o) { return o.auth.token_webhook_config_file == "/f"; }},
    {"--authentication-token-webhook-version=v1",
     [](const Options& o) { return o.auth.token_webhook_version == "v1"; }},
    {"--authorization-webhook-cache-authorized-ttl=7s",
     [](const Options& o) { return o.auth.authorization_webhook_authorized_ttl == "7s"; }},
    {"--authorization-webhook-cache-unauthorized-ttl=7s",
     [](const Options& o) { return o.auth.authorization_webhook_unauthorized_ttl == "7s"; }},
    {"--authorization-webhook-config-file=/f",
     [](const Options& o) { return o.auth.authorization_webhook_config_file == "/f"; }},
    {"--authorization-webhook-version=v1",
     [](const Options& o) { return o.auth.authorization_webhook_version == "v1"; }},
    {"--oidc-ca-file=/f", [](const Options& o) { return o.auth.oidc_ca_file == "/f"; }},
    {"--oidc-client-id=x", [](const Options& o) { return o.auth.oidc_client_id == "x"; }},
    {"--oidc-groups-claim=x", [](const Options& o) { return o.auth.oidc_groups_claim == "x"; }},
    {"--oidc-groups-prefix=x", [](const Options& o) { return o.auth.oidc_groups_prefix == "x"; }},
    {"--oidc-issuer-url=https://x", [](const Options& o) { return o.auth.oidc_issuer_url == "https://x"; }},
    {"--oidc-required-claim=a=b",
     [](const Options& o) { return o.auth.oidc_required_claims == Words{"a=b"}; }},
    {"--oidc-signing-algs=ES256,RS512",
     [](const Options& o) {
       return o.auth.oidc_signing_algs == Words{"ES256", "RS512"};
     }},
    {"--oidc-username-claim=x", [](const Options& o) { return o.auth.oidc_username_claim == "x"; }},
    {"--oidc-username-prefix=-", [](const Options& o) { return o.auth.oidc_username_prefix == "-"; }},
    {"--requestheader-uid-headers=X-A,X-B",
     [](const Options& o) {
       return o.auth.requestheader_uid_headers == Words{"X-A", "X-B"};
     }},
    {"--service-account-extend-token-expiration=false",
     [](const Options& o) { return !o.auth.service_account_extend_token_expiration; }},
    {"--service-account-lookup=false", [](const Options& o) { return !o.auth.service_account_lookup; }},

    // Storage.
    {"--etcd-binary=/e", [](const Options& o) { return o.etcd_binary == "/e"; }},
    {"--etcd-address=192.0.2.1", [](const Options& o) { return o.etcd_address == "192.0.2.1"; }},
    {"--etcd-name=cp-1", [](const Options& o) { return o.etcd_name == "cp-1"; }},
    {"--etcd-initial-cluster=a=https://a:2380,b=https://b:2380",
     [](const Options& o) { return o.etcd_initial_cluster == "a=https://a:2380,b=https://b:2380"; }},
    {"--etcd-initial-cluster-state=new",
     [](const Options& o) { return o.etcd_initial_cluster_state == "new"; }},
    {"--etcd-pki-dir=/pki", [](const Options& o) { return o.etcd_pki_dir == "/pki"; }},
    {"--storage-backend=etcd3", [](const Options& o) { return o.storage_backend == "etcd3"; }},

    // Controllers and scheduler.
    {"--cluster-signing-duration=48h", [](const Options& o) { return o.signing.duration == hours(48); }},
    {"--cluster-signing-kubelet-client-cert-file=/f",
     [](const Options& o) { return o.signing.kubelet_client.certificate == "/f"; }},
    {"--cluster-signing-kubelet-serving-key-file=/f",
     [](const Options& o) { return o.signing.kubelet_serving.key == "/f"; }},
    {"--cluster-signing-kube-apiserver-client-cert-file=/f",
     [](const Options& o) { return o.signing.api_server_client.certificate == "/f"; }},
    {"--cluster-signing-legacy-unknown-key-file=/f",
     [](const Options& o) { return o.signing.legacy_unknown.key == "/f"; }},
    {"--disable-force-detach-on-timeout", [](const Options& o) { return o.manager.disable_force_detach; }},
    {"--max-endpoints-per-slice=7", [](const Options& o) { return o.manager.max_endpoints_per_slice == 7; }},
    {"--mirroring-max-endpoints-per-subset=7",
     [](const Options& o) { return o.manager.max_mirrored_per_subset == 7; }},
    {"--horizontal-pod-autoscaler-initial-readiness-delay=7s",
     [](const Options& o) { return o.manager.pod_autoscaler.initial_readiness_delay == seconds(7); }},
    {"--horizontal-pod-autoscaler-tolerance=0.2",
     [](const Options& o) { return o.manager.pod_autoscaler.tolerance == 0.2; }},
    {"--large-cluster-size-threshold=7",
     [](const Options& o) { return o.manager.large_cluster_size_threshold == 7; }},
    {"--legacy-service-account-token-clean-up-period=7h",
     [](const Options& o) { return o.manager.legacy_token_period == hours(7); }},
    {"--node-eviction-rate=0.5", [](const Options& o) { return o.manager.node_eviction_rate == 0.5; }},
    {"--node-monitor-grace-period=7s",
     [](const Options& o) { return o.manager.node_monitor_grace_period == seconds(7); }},
    {"--node-startup-grace-period=7s",
     [](const Options& o) { return o.manager.node_startup_grace_period == seconds(7); }},
    {"--pod-max-in-unschedulable-pods-duration=7m",
     [](const Options& o) { return o.max_unschedulable == minutes(7); }},
    {"--resource-quota-sync-period=7m",
     [](const Options& o) { return o.manager.resource_quota_sync_period == minutes(7); }},
    {"--secondary-node-eviction-rate=0.5",
     [](const Options& o) { return o.manager.secondary_node_eviction_rate == 0.5; }},
    {"--terminated-pod-gc-threshold=7",
     [](const Options& o) { return o.manager.terminated_pod_gc_threshold == 7; }},
    {"--unhealthy-zone-threshold=0.7",
     [](const Options& o) { return o.manager.unhealthy_zone_threshold == 0.7; }},
};

TEST(FlagValues, ReachTheirOption) {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  Words given;
  for (const Case& one : kCases) {
    EXPECT_FALSE(one.is_set(options)) << "the default tells nothing: " << one.flag;
    given.push_back(one.flag);
  }
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(app, given, told, told)) << told.str();
  for (const Case& one : kCases) EXPECT_TRUE(one.is_set(options)) << one.flag;
}

// There is one kind of lock, and one kind of storage.
TEST(FlagValues, OfOneKindTakeNoOther) {
  for (const char* flag : {"--leader-elect-resource-lock=endpoints", "--storage-backend=etcd2"}) {
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    EXPECT_EQ(ParseFlags(app, {flag}, told, told), 1) << flag;
  }
}

}  // namespace
}  // namespace keelson::controlplane
