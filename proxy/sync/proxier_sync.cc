// The half of Proxier that writes: from a batch to the kernel.
#include <algorithm>

#include "lib/base/log.h"
#include "proxy/serving/metrics.h"
#include "proxy/sync/proxier_batch.h"

namespace keelson::proxy {
namespace {

const char* FamilyName(bool v4) { return v4 ? "IPv4" : "IPv6"; }

}  // namespace

void Proxier::OpenDataplanes(const NodeFacts& facts) {
  pod_cidrs_ = facts.pod_cidrs;
  std::vector<OwnTable> tables;
  std::optional<std::vector<IpPrefix>> pod_cidrs;
  if (options_.pods_of_node_cidr) pod_cidrs = facts.pod_cidrs;
  for (bool v4 : {true, false}) {
    Result<std::unique_ptr<Dataplane>> made = mode_.make(v4, pod_cidrs);
    if (!made) {
      log::Error("Cannot reach the kernel", {{"mode", mode_.name}, {"err", made.error()}});
      dataplanes_.clear();
      return;
    }
    // A kernel without IPv6 has no place for its rules.
    Result<> usable = v4 ? Result<>() : (*made)->Probe();
    if (!usable) {
      log::Warn("No Services over IPv6 on this machine", {{"err", usable.error()}});
      continue;
    }
    std::vector<OwnTable> own = (*made)->Tables();
    tables.insert(tables.end(), own.begin(), own.end());
    if (ips_) (*made)->SetNodeIps(ips_->node_ports);
    if (ips_) (*made)->SetOwnIps(ips_->own);
    dataplanes_.push_back(std::move(*made));
  }
  MutexLock lock(mutex_);
  own_tables_ = std::move(tables);
}

void Proxier::BeginSwitch(DataplaneMode next, const NodeFacts& facts) {
  std::vector<std::unique_ptr<Dataplane>> old = std::exchange(dataplanes_, {});
  DataplaneMode old_mode = std::exchange(mode_, std::move(next));
  OpenDataplanes(facts);
  if (dataplanes_.empty()) {
    log::Error("The proxy mode stays as it was", {{"mode", old_mode.name}, {"refused", mode_.name}});
    mode_ = std::move(old_mode);
    dataplanes_ = std::move(old);
    return;
  }
  log::Info("The proxy mode changes", {{"from", old_mode.name}, {"to", mode_.name}});
  // One of the same kind takes over what it finds.
  for (auto& dataplane : old) retiring_.push_back({old_mode.name, std::move(dataplane)});
  std::erase_if(retiring_, [&](const Retiree& one) { return one.mode == mode_.name; });
  retire_at_ = clock_.SteadyNow();
}

void Proxier::RetireOthers() {
  if (!std::exchange(looked_for_others_, true)) {
    for (const DataplaneMode& mode : options_.others) {
      Result<bool> left = mode.left ? mode.left() : Result<bool>(true);
      if (mode.name == mode_.name || !left || !*left) continue;
      for (bool v4 : {true, false}) {
        Result<std::unique_ptr<Dataplane>> made = mode.make(v4, std::nullopt);
        if (made && (v4 || (*made)->Probe())) retiring_.push_back({mode.name, std::move(*made)});
      }
    }
    retire_at_ = clock_.SteadyNow();
  }
  if (!retire_at_ || clock_.SteadyNow() < *retire_at_) return;
  std::chrono::milliseconds again = options_.sync_period;
  std::erase_if(retiring_, [&](const Retiree& one) {
    auto left = one.dataplane->Retire();
    if (!left) {
      log::Warn("Something of the old proxy mode stays for now", {{"mode", one.mode}, {"err", left.error()}});
      return false;
    }
    if (*left) again = std::min(again, **left);
    return !*left;
  });
  retire_at_.reset();
  if (!retiring_.empty()) retire_at_ = clock_.SteadyNow() + again;
}

Result<> Proxier::FollowIps(const NodeFacts& facts) {
  Result<NodeIps> ips = read_ips_(facts.ips);
  if (!ips) {
    MutexLock lock(mutex_);
    addresses_changed_ = true;
    return ips.error();
  }
  // Also when they are the same: they may be another device's.
  for (auto& dataplane : dataplanes_) dataplane->SetOwnIps(ips->own);
  if (ips_ == *ips) return {};
  const bool same_node_ports = ips_ && ips_->node_ports == ips->node_ports, first = !ips_;
  ips_ = *std::move(ips);
  if (same_node_ports) return {};
  cleaner_.SetNodeIps(ips_->node_ports);
  for (auto& dataplane : dataplanes_) dataplane->SetNodeIps(ips_->node_ports);
  if (first) return {};
  // Source ranges may mean this node.
  MutexLock lock(mutex_);
  services_.MarkAllChanged();
  pending_ = true;
  return {};
}

Result<> Proxier::SyncOne(Dataplane& dataplane, const Batch& batch) {
  const bool v4 = dataplane.v4();
  FamilyMetrics& metrics = MetricsOf(v4);
  SteadyTime begin = clock_.SteadyNow();
  if (v4 ? batch.tampered_v4 : batch.tampered_v6) {
    log::Warn("Somebody else has changed the Service rules; they are looked at",
              {{"family", FamilyName(v4)}});
    dataplane.Distrust();
  }
  if (batch.periodic) dataplane.OnPeriod();
  Result<SyncStats> stats = batch.look_at_tables ? dataplane.Verify() : dataplane.Sync();
  if (!stats) {
    metrics.sync_failures.Increment();
    return stats.error();
  }
  if (stats->operations > 0) {
    log::Debug("Service rules written",
               {{"family", FamilyName(v4)}, {"changes", stats->operations}, {"full", stats->full}});
  }
  for (const Refusal& refusal : stats->refusals) {
    metrics.sync_failures.Increment();
    log::Error("The kernel refuses the rules of a Service",
               {{"family", FamilyName(v4)}, {"service", refusal.service}, {"err", refusal.error}});
    warn_(refusal.service, "FailedToSyncServiceRules", refusal.error.message());
  }
  if (stats->again) {
    const SteadyTime at = clock_.SteadyNow() + *stats->again;
    again_at_ = std::min(at, again_at_.value_or(at));
  }
  double took = Seconds(clock_.SteadyNow() - begin);
  metrics.sync.Observe(took);
  (stats->full ? metrics.full_sync : metrics.partial_sync).Observe(took);
  metrics.last_synced.Set(Stamp(clock_.Now()));
  metrics.refused.Set(static_cast<double>(dataplane.Refused()));
  for (WallTime trigger : batch.triggers) {
    metrics.programming.Observe(std::max(0.0, Seconds(clock_.Now() - trigger)));
  }
  return {};
}

Result<> Proxier::Apply(const Batch& batch) {
  Result<> all;
  if (batch.addresses_changed) all = FollowIps(batch.node);
  for (const Batch::Change& change : batch.changes) {
    cleaner_.SetService(change.key, change.v4, change.v6);
    no_local_endpoints_v4_.SetService(change.key, change.v4);
    no_local_endpoints_v6_.SetService(change.key, change.v6);
  }
  for (auto& dataplane : dataplanes_) {
    for (const Batch::Change& change : batch.changes) {
      dataplane->SetService(change.key, dataplane->v4() ? change.v4 : change.v6);
    }
    dataplane->SetServiceCidrs(batch.service_cidrs);
  }
  // From here on the plans have the changes, whatever fails.
  again_at_.reset();
  for (auto& dataplane : dataplanes_) {
    if (Result<> one = SyncOne(*dataplane, batch); !one) all = one;
  }
  KEELSON_RETURN_IF_ERROR(all);
  CleanConntrack();
  health_checks_.Sync(batch.health_checks);
  for (bool v4 : {true, false}) {
    const NoLocalEndpoints& gaps = v4 ? no_local_endpoints_v4_ : no_local_endpoints_v6_;
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
