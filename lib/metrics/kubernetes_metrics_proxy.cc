// Metrics of kube-proxy.
#include "lib/metrics/kubernetes_metrics.h"

namespace keelson::metrics {
namespace {

constexpr KubernetesMetric kTable[] = {
    {"kubeproxy_conntrack_reconciler_deleted_entries_total", Kind::kCounter, Stability::kAlpha, "ip_family"},
    {"kubeproxy_conntrack_reconciler_sync_duration_seconds", Kind::kHistogram, Stability::kAlpha, "ip_family",
     "0.001*2^15"},
    {"kubeproxy_iptables_ct_state_invalid_dropped_packets_total", Kind::kAny, Stability::kAlpha, ""},
    {"kubeproxy_iptables_localhost_nodeports_accepted_packets_total", Kind::kAny, Stability::kAlpha, ""},
    {"kubeproxy_network_programming_duration_seconds", Kind::kHistogram, Stability::kAlpha, "ip_family",
     "0.25 0.5 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 "
     "35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 65 70 75 80 85 90 95 100 "
     "105 110 115 120 150 180 210 240 270 300"},
    {"kubeproxy_proxy_healthz_total", Kind::kCounter, Stability::kAlpha, "code"},
    {"kubeproxy_proxy_livez_total", Kind::kCounter, Stability::kAlpha, "code"},
    {"kubeproxy_sync_full_proxy_rules_duration_seconds", Kind::kHistogram, Stability::kAlpha, "ip_family",
     "0.001*2^15"},
    {"kubeproxy_sync_partial_proxy_rules_duration_seconds", Kind::kHistogram, Stability::kAlpha, "ip_family",
     "0.001*2^15"},
    {"kubeproxy_sync_proxy_rules_duration_seconds", Kind::kHistogram, Stability::kAlpha, "ip_family",
     "0.001*2^15"},
    {"kubeproxy_sync_proxy_rules_endpoint_changes_pending", Kind::kGauge, Stability::kAlpha, ""},
    {"kubeproxy_sync_proxy_rules_endpoint_changes_total", Kind::kCounter, Stability::kAlpha, ""},
    {"kubeproxy_sync_proxy_rules_iptables_last", Kind::kGauge, Stability::kAlpha, "ip_family,table"},
    {"kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total", Kind::kCounter, Stability::kAlpha,
     "ip_family"},
    {"kubeproxy_sync_proxy_rules_iptables_restore_failures_total", Kind::kCounter, Stability::kAlpha,
     "ip_family"},
    {"kubeproxy_sync_proxy_rules_iptables_total", Kind::kGauge, Stability::kAlpha, "ip_family,table"},
    {"kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", Kind::kGauge, Stability::kAlpha,
     "ip_family"},
    {"kubeproxy_sync_proxy_rules_last_timestamp_seconds", Kind::kGauge, Stability::kAlpha, "ip_family"},
    {"kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total", Kind::kCounter, Stability::kAlpha,
     "ip_family"},
    {"kubeproxy_sync_proxy_rules_nftables_sync_failures_total", Kind::kCounter, Stability::kAlpha,
     "ip_family"},
    {"kubeproxy_sync_proxy_rules_no_local_endpoints_total", Kind::kGauge, Stability::kAlpha,
     "ip_family,traffic_policy"},
    {"kubeproxy_sync_proxy_rules_service_changes_pending", Kind::kGauge, Stability::kAlpha, ""},
    {"kubeproxy_sync_proxy_rules_service_changes_total", Kind::kCounter, Stability::kAlpha, ""},
};

}  // namespace

std::span<const KubernetesMetric> MetricsOfProxy() { return kTable; }

}  // namespace keelson::metrics
