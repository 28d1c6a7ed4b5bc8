#include "proxy/proxier.h"

#include "lib/api/types.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"

namespace keelson::proxy {
namespace {

constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";
constexpr char kExcludeLabel[] = "node.kubernetes.io/exclude-from-external-load-balancers";
constexpr char kDeletionTaint[] = "ToBeDeletedByClusterAutoscaler";
constexpr std::chrono::seconds kFirstRetry{1}, kLastRetry{30};

struct Metrics {
  metrics::Histogram& duration =
      metrics::Histograms("kubeproxy_sync_proxy_rules_duration_seconds",
                          "Seconds of one sync of service rules", metrics::ExponentialBuckets(0.0001, 2, 18))
          .HistogramWith();
  metrics::Value& last = metrics::Gauge("kubeproxy_sync_proxy_rules_last_timestamp_seconds",
                                        "When service rules were last in sync")
                             .With();
  metrics::Value& queued = metrics::Gauge("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
                                          "When a sync of service rules was last asked for")
                               .With();
  metrics::Value& services =
      metrics::Counter("kubeproxy_sync_proxy_rules_service_changes_total", "Changes of Services").With();
  metrics::Value& endpoints =
      metrics::Counter("kubeproxy_sync_proxy_rules_endpoint_changes_total", "Changes of EndpointSlices")
          .With();
  metrics::Value& full = metrics::Counter("kubeproxy_sync_full_proxy_rules_total",
                                          "Syncs that compared everything with the kernel")
                             .With();
  metrics::Value& failures = metrics::Counter("kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
                                              "Syncs that the kernel refused")
                                 .With();
  metrics::Value& flows = metrics::Counter("kubeproxy_conntrack_reconciler_deleted_entries_total",
                                           "Stale UDP flows removed", {"ip_family"})
                              .With({"all"});
};

Metrics& M() {
  static Metrics metrics;
  return metrics;
}

double Seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }
double Stamp(WallTime time) { return Seconds(time.time_since_epoch()); }

// A node that leaves gets no more new connections from load balancers.
bool IsEligible(const corev1::Node& node) {
  if (node.metadata().has_deletion_timestamp()) return false;
  const auto& labels = node.metadata().labels();
  if (labels.find(kExcludeLabel) != labels.end()) return false;
  for (const auto& taint : node.spec().taints()) {
    if (taint.key() == kDeletionTaint) return false;
  }
  return true;
}

}  // namespace

// What has changed since the last one.
struct Proxier::Batch {
  struct Change {
    std::string key;
    std::vector<ResolvedPort> v4, v6;
  };
  std::vector<Change> changes;
  std::map<std::string, HealthCheck> health_checks;
  NodeFacts node;
  bool verify = false;  // it is time to look for others' changes
};

Proxier::Proxier(ProxierOptions options, OpenKernel open_kernel, NodePortIps node_port_ips, Health& health,
                 Clock& clock)
    : options_(std::move(options)),
      open_kernel_(std::move(open_kernel)),
      node_port_ips_(std::move(node_port_ips)),
      health_(health),
      clock_(clock),
      services_(NodePlace{options_.node_name, ""}),
      health_checks_(health) {}
Proxier::~Proxier() = default;

void Proxier::Wake() {
  pending_ = true;
  health_.Queued();
  M().queued.Set(Stamp(clock_.Now()));
  wake_.notify_all();
}

void Proxier::OnService(const std::string& key, const corev1::Service* service) {
  MutexLock lock(mutex_);
  if (!services_.UpdateService(key, service)) return;
  M().services.Increment();
  if (synced_) Wake();
}

void Proxier::OnSlice(const std::string& key, const discoveryv1::EndpointSlice* slice) {
  MutexLock lock(mutex_);
  if (!services_.UpdateSlice(key, slice)) return;
  M().endpoints.Increment();
  if (synced_) Wake();
}

void Proxier::OnNode(const corev1::Node* node) {
  health_.SetNodeEligible(!node || IsEligible(*node));
  if (!node) return;  // while it is away, what is known of it holds
  NodeFacts facts;
  auto zone = node->metadata().labels().find(kZoneLabel);
  if (zone != node->metadata().labels().end()) facts.zone = zone->second;
  for (const auto& address : node->status().addresses()) {
    Result<IpAddress> ip = IpAddress::Parse(address.address());
    if (address.type() == "InternalIP" && ip) facts.ips.push_back(*ip);
  }
  for (const std::string& text : node->spec().pod_cidrs()) {
    if (Result<IpPrefix> cidr = IpPrefix::Parse(text)) facts.pod_cidrs.push_back(cidr->Masked());
  }
  MutexLock lock(mutex_);
  if (facts == node_) return;
  services_.SetPlace({options_.node_name, facts.zone});
  if (options_.pods_of_node_cidr && facts.pod_cidrs != node_.pod_cidrs) services_.MarkAllChanged();
  node_ = std::move(facts);
  if (synced_) Wake();
}

void Proxier::MarkSynced() {
  MutexLock lock(mutex_);
  synced_ = true;
  Wake();
}

void Proxier::OpenDataplanes(const NodeFacts& facts) {
  pod_cidrs_ = facts.pod_cidrs;
  for (const nftables::Options* wanted : {&options_.v4, &options_.v6}) {
    nftables::Options options = *wanted;
    if (options_.pods_of_node_cidr) options.pod_cidrs.clear();
    for (const IpPrefix& cidr : facts.pod_cidrs) {
      if (options_.pods_of_node_cidr && cidr.is_v4() == options.v4) options.pod_cidrs.push_back(cidr);
    }
    Result<std::unique_ptr<nft::Kernel>> kernel = open_kernel_();
    if (!kernel) {
      log::Error("Cannot reach the kernel's nftables", {{"err", kernel.error()}});
      dataplanes_.clear();
      return;
    }
    auto dataplane = std::make_unique<nftables::Dataplane>(std::move(*kernel), options);
    // A kernel without IPv6 has no place for its rules.
    Result<nftables::SyncStats> usable = options.v4 ? nftables::SyncStats{} : dataplane->Probe();
    if (!usable) {
      log::Warn("No Services over IPv6 on this machine", {{"err", usable.error()}});
      continue;
    }
    dataplanes_.push_back(std::move(dataplane));
  }
}

std::optional<Proxier::Batch> Proxier::NextBatch(std::stop_token stop, SteadyTime verify_at) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested() && !(synced_ && pending_) && clock_.SteadyNow() < verify_at) {
    clock_.WaitUntil(mutex_, wake_, verify_at);
  }
  if (stop.stop_requested()) return std::nullopt;
  Batch batch{.node = node_};
  batch.verify = clock_.SteadyNow() >= verify_at;
  if (!synced_) return batch;
  pending_ = false;
  for (const std::string& key : services_.TakeChanged()) {
    batch.changes.push_back({key, services_.Resolve(key, true), services_.Resolve(key, false)});
  }
  batch.health_checks = services_.HealthChecks();
  return batch;
}

Result<> Proxier::Apply(const Batch& batch) {
  SteadyTime begin = clock_.SteadyNow();
  for (const Batch::Change& change : batch.changes) {
    std::vector<ResolvedPort> both = change.v4;
    both.insert(both.end(), change.v6.begin(), change.v6.end());
    cleaner_.SetService(change.key, both);
  }
  for (auto& dataplane : dataplanes_) {
    nftables::Plan& plan = dataplane->plan();
    for (const Batch::Change& change : batch.changes) {
      plan.SetService(change.key, plan.options().v4 ? change.v4 : change.v6);
    }
  }
  // From here on the plans have the changes, whatever fails.
  ASSIGN_OR_RETURN(std::vector<IpAddress> ips, node_port_ips_(batch.node.ips));
  cleaner_.SetNodeIps(ips);
  for (auto& dataplane : dataplanes_) dataplane->plan().SetNodeIps(ips);
  for (auto& dataplane : dataplanes_) {
    Result<nftables::SyncStats> stats = dataplane->Sync();
    if (stats && batch.verify) stats = dataplane->Verify();
    if (!stats) return stats.error();
    if (stats->full) M().full.Increment();
    if (stats->operations > 0) {
      log::Debug("Service rules written", {{"family", dataplane->plan().options().v4 ? "IPv4" : "IPv6"},
                                           {"changes", stats->operations},
                                           {"full", stats->full}});
    }
  }
  CleanConntrack();
  health_checks_.Sync(batch.health_checks);
  M().duration.Observe(Seconds(clock_.SteadyNow() - begin));
  M().last.Set(Stamp(clock_.Now()));
  return {};
}

void Proxier::CleanConntrack() {
  if (!cleaner_.NeedsLook()) return;
  Result<netlink::Socket> socket = netlink::Socket::OpenNetfilter();
  Result<int> removed = socket ? cleaner_.Clean(*socket) : Result<int>(socket.error());
  if (!removed) {
    log::Warn("Stale UDP flows stay", {{"err", removed.error()}});
  } else {
    M().flows.Add(*removed);
  }
}

Result<> Proxier::Run(std::stop_token stop, const std::function<void()>& ready) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    wake_.notify_all();
  });
  bool first = true;
  std::chrono::seconds retry = kFirstRetry;
  SteadyTime next_verify = clock_.SteadyNow() + options_.sync_period;
  while (std::optional<Batch> batch = NextBatch(stop, next_verify)) {
    next_verify = clock_.SteadyNow() + options_.sync_period;
    {
      MutexLock lock(mutex_);
      if (!synced_) continue;
    }
    if (options_.pods_of_node_cidr && batch->node.pod_cidrs != pod_cidrs_) dataplanes_.clear();
    if (dataplanes_.empty()) OpenDataplanes(batch->node);
    Result<> applied;
    if (dataplanes_.empty()) {
      MutexLock lock(mutex_);
      services_.MarkAllChanged();  // nobody has taken this batch
      applied = Error(Code::kUnavailable, "no nftables");
    } else {
      applied = Apply(*batch);
    }
    if (!applied) {
      M().failures.Increment();
      log::Error("Service rules are not in sync",
                 {{"err", applied.error()}, {"retry_seconds", retry.count()}});
      next_verify = clock_.SteadyNow() + retry;
      retry = std::min(retry * 2, kLastRetry);
      continue;
    }
    retry = kFirstRetry;
    bool more;
    {
      MutexLock lock(mutex_);
      more = pending_;
    }
    health_.Synced();
    if (more) health_.Queued();
    if (first) ready();
    first = false;
    if (options_.min_sync_period.count() > 0) {
      MutexLock lock(mutex_);
      SteadyTime until = clock_.SteadyNow() + options_.min_sync_period;
      while (!stop.stop_requested() && clock_.SteadyNow() < until) clock_.WaitUntil(mutex_, wake_, until);
    }
  }
  return {};
}

}  // namespace keelson::proxy
