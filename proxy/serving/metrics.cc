#include "proxy/serving/metrics.h"

namespace keelson::proxy {
namespace {

metrics::Histogram& Latency(const char* name, const char* help, const char* family) {
  return metrics::Histograms(name, help, metrics::ExponentialBuckets(0.001, 2, 15), {"ip_family"})
      .HistogramWith({family});
}

std::vector<double> ProgrammingBuckets() {
  std::vector<double> out = {0.25, 0.5};
  auto add = [&](double first, double step, int count) {
    for (int i = 0; i < count; ++i) out.push_back(first + step * i);
  };
  add(1, 1, 59);
  add(60, 5, 12);
  add(120, 30, 7);
  return out;
}

metrics::Value& CounterOf(const char* name, const char* help, const char* family) {
  return metrics::Counter(name, help, {"ip_family"}).With({family});
}
metrics::Value& GaugeOf(const char* name, const char* help, const char* family) {
  return metrics::Gauge(name, help, {"ip_family"}).With({family});
}
metrics::Value& NoLocal(const char* policy, const char* family) {
  return metrics::Gauge("kubeproxy_sync_proxy_rules_no_local_endpoints_total",
                        "Number of services with a Local traffic policy and no endpoints",
                        {"traffic_policy", "ip_family"})
      .With({policy, family});
}

}  // namespace

FamilyMetrics::FamilyMetrics(const char* family)
    : sync(Latency("kubeproxy_sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds",
                   family)),
      full_sync(Latency("kubeproxy_sync_full_proxy_rules_duration_seconds",
                        "SyncProxyRules latency in seconds for full resyncs", family)),
      partial_sync(Latency("kubeproxy_sync_partial_proxy_rules_duration_seconds",
                           "SyncProxyRules latency in seconds for partial resyncs", family)),
      programming(metrics::Histograms("kubeproxy_network_programming_duration_seconds",
                                      "In Cluster Network Programming Latency in seconds",
                                      ProgrammingBuckets(), {"ip_family"})
                      .HistogramWith({family})),
      conntrack_sync(Latency("kubeproxy_conntrack_reconciler_sync_duration_seconds",
                             "ReconcileConntrackFlowsLatency latency in seconds", family)),
      last_synced(GaugeOf("kubeproxy_sync_proxy_rules_last_timestamp_seconds",
                          "The last time proxy rules were successfully synced", family)),
      last_queued(GaugeOf("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
                          "The last time a sync of proxy rules was queued", family)),
      sync_failures(CounterOf("kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
                              "Cumulative proxy nftables sync failures", family)),
      cleanup_failures(CounterOf("kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total",
                                 "Cumulative proxy nftables cleanup failures", family)),
      flows_deleted(CounterOf("kubeproxy_conntrack_reconciler_deleted_entries_total",
                              "Cumulative conntrack flows deleted by conntrack reconciler", family)),
      no_local_internal(NoLocal("internal", family)),
      no_local_external(NoLocal("external", family)),
      refused(GaugeOf("keelson_proxy_refused_services", "Services whose rules the kernel does not take",
                      family)) {}

ChangeMetrics::ChangeMetrics()
    : services(metrics::Counter("kubeproxy_sync_proxy_rules_service_changes_total",
                                "Cumulative proxy rules Service changes")
                   .With()),
      services_pending(metrics::Gauge("kubeproxy_sync_proxy_rules_service_changes_pending",
                                      "Pending proxy rules Service changes")
                           .With()),
      endpoints(metrics::Counter("kubeproxy_sync_proxy_rules_endpoint_changes_total",
                                 "Cumulative proxy rules Endpoint changes")
                    .With()),
      endpoints_pending(metrics::Gauge("kubeproxy_sync_proxy_rules_endpoint_changes_pending",
                                       "Pending proxy rules Endpoint changes")
                            .With()) {}

FamilyMetrics& MetricsOf(bool v4) {
  static FamilyMetrics ipv4("IPv4"), ipv6("IPv6");
  return v4 ? ipv4 : ipv6;
}

ChangeMetrics& MetricsOfChanges() {
  static ChangeMetrics changes;
  return changes;
}

void CountHealthAnswer(bool live, int code) {
  static metrics::Family& healthz =
      metrics::Counter("kubeproxy_proxy_healthz_total", "Cumulative proxy healthz HTTP status", {"code"});
  static metrics::Family& livez =
      metrics::Counter("kubeproxy_proxy_livez_total", "Cumulative proxy livez HTTP status", {"code"});
  (live ? livez : healthz).With({std::to_string(code)}).Increment();
}

}  // namespace keelson::proxy
