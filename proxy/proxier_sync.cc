// The half of Proxier that writes: from a batch to the kernel.
#include <algorithm>

#include "lib/base/log.h"
#include "proxy/metrics.h"
#include "proxy/proxier_batch.h"

namespace keelson::proxy {
namespace {

const char* FamilyName(bool v4) { return v4 ? "IPv4" : "IPv6"; }

}  // namespace

void Proxier::OpenDataplanes(const NodeFacts& facts) {
  pod_cidrs_ = facts.pod_cidrs;
  std::set<uint32_t> ports;
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
    ports.insert(dataplane->port());
    if (nodeport_ips_) dataplane->plan().SetNodeIps(*nodeport_ips_);
    dataplanes_.push_back(std::move(dataplane));
  }
  MutexLock lock(mutex_);
  own_ports_ = std::move(ports);
}

Result<> Proxier::FollowNodePortIps(const NodeFacts& facts) {
  Result<std::vector<IpAddress>> ips = node_port_ips_(facts.ips);
  if (!ips) {
    MutexLock lock(mutex_);
    addresses_changed_ = true;
    return ips.error();
  }
  if (nodeport_ips_ == *ips) return {};
  const bool first = !nodeport_ips_;
  nodeport_ips_ = std::move(*ips);
  cleaner_.SetNodeIps(*nodeport_ips_);
  for (auto& dataplane : dataplanes_) dataplane->plan().SetNodeIps(*nodeport_ips_);
  if (first) return {};
  // Source ranges may mean this node.
  MutexLock lock(mutex_);
  services_.MarkAllChanged();
  pending_ = true;
  return {};
}

Result<> Proxier::SyncOne(nftables::Dataplane& dataplane, const Batch& batch) {
  const bool v4 = dataplane.plan().options().v4;
  FamilyMetrics& metrics = MetricsOf(v4);
  SteadyTime begin = clock_.SteadyNow();
  if (v4 ? batch.tampered_v4 : batch.tampered_v6) {
    log::Warn("Somebody else has changed the Service rules; they are looked at",
              {{"family", FamilyName(v4)}});
    dataplane.Distrust();
  }
  if (batch.periodic) dataplane.RetryRefused();
  Result<nftables::SyncStats> stats = batch.look_at_tables ? dataplane.Verify() : dataplane.Sync();
  if (!stats) {
    metrics.sync_failures.Increment();
    return stats.error();
  }
  if (stats->operations > 0) {
    log::Debug("Service rules written",
               {{"family", FamilyName(v4)}, {"changes", stats->operations}, {"full", stats->full}});
  }
  for (const nftables::Refusal& refusal : stats->refusals) {
    metrics.sync_failures.Increment();
    log::Error("The kernel refuses the rules of a Service",
               {{"family", FamilyName(v4)}, {"service", refusal.service}, {"err", refusal.error}});
    warn_(refusal.service, "FailedToSyncServiceRules", refusal.error.message());
  }
  double took = Seconds(clock_.SteadyNow() - begin);
  metrics.sync.Observe(took);
  (stats->full ? metrics.full_sync : metrics.partial_sync).Observe(took);
  metrics.last_synced.Set(Stamp(clock_.Now()));
  metrics.refused.Set(static_cast<double>(dataplane.plan().Held().size()));
  for (WallTime trigger : batch.triggers) {
    metrics.programming.Observe(std::max(0.0, Seconds(clock_.Now() - trigger)));
  }
  return {};
}

Result<> Proxier::Apply(const Batch& batch) {
  Result<> all;
  if (batch.addresses_changed) all = FollowNodePortIps(batch.node);
  for (const Batch::Change& change : batch.changes) {
    cleaner_.SetService(change.key, change.v4, change.v6);
    gaps_v4_.SetService(change.key, change.v4);
    gaps_v6_.SetService(change.key, change.v6);
  }
  for (auto& dataplane : dataplanes_) {
    nftables::Plan& plan = dataplane->plan();
    for (const Batch::Change& change : batch.changes) {
      plan.SetService(change.key, plan.options().v4 ? change.v4 : change.v6);
    }
    plan.SetServiceCidrs(batch.service_cidrs);
  }
  // From here on the plans have the changes, whatever fails.
  for (auto& dataplane : dataplanes_) {
    if (Result<> one = SyncOne(*dataplane, batch); !one) all = one;
  }
  RETURN_IF_ERROR(all);
  CleanConntrack();
  health_checks_.Sync(batch.health_checks);
  for (bool v4 : {true, false}) {
    const PolicyGaps& gaps = v4 ? gaps_v4_ : gaps_v6_;
    MetricsOf(v4).no_local_internal.Set(gaps.internal());
    MetricsOf(v4).no_local_external.Set(gaps.external());
  }
  return {};
}

void Proxier::CleanConntrack() {
  if (!cleaner_.NeedsLook()) return;
  SteadyTime begin = clock_.SteadyNow();
  Result<netlink::Socket> socket = netlink::Socket::OpenNetfilter();
  Result<ConntrackCleaner::Removed> removed =
      socket ? cleaner_.Clean(*socket) : Result<ConntrackCleaner::Removed>(socket.error());
  if (!removed) {
    log::Warn("Stale UDP flows stay", {{"err", removed.error()}});
    return;
  }
  for (bool v4 : {true, false}) {
    MetricsOf(v4).flows_deleted.Add(v4 ? removed->v4 : removed->v6);
    MetricsOf(v4).conntrack_sync.Observe(Seconds(clock_.SteadyNow() - begin));
  }
}

}  // namespace keelson::proxy
