#include "cni/agent/syncer.h"

#include <algorithm>

#include "cni/agent/conflist.h"
#include "cni/agent/masquerade.h"
#include "lib/base/log.h"
#include "lib/linux/sysctl.h"
#include "lib/metrics/metrics.h"

namespace keelson::cni::agent {
namespace {

struct Metrics {
  metrics::Family& syncs = metrics::Counter("keelson_cni_sync_total", "Syncs by result.", {"result"});
  metrics::Histogram& duration =
      metrics::Histograms("keelson_cni_sync_duration_seconds", "How long a sync takes.",
                          metrics::ExponentialBuckets(0.0005, 2, 14))
          .HistogramWith();
  metrics::Family& changes =
      metrics::Counter("keelson_cni_kernel_changes_total", "Changes made in the kernel.", {"object", "verb"});
  metrics::Value& repairs =
      metrics::Counter("keelson_cni_repairs_total", "Syncs that put right what others had changed.").With();
  metrics::Family& routes = metrics::Gauge("keelson_cni_routes", "Routes to peers' pods by way.", {"way"});
  metrics::Value& peers = metrics::Gauge("keelson_cni_peers", "Other nodes with pods.").With();
  metrics::Value& problems =
      metrics::Gauge("keelson_cni_problems", "What is left out as invalid or unreachable.").With();
  metrics::Value& mtu = metrics::Gauge("keelson_cni_pod_mtu_bytes", "MTU of new pods.").With();
};

Metrics& M() {
  static auto* metrics = new Metrics;
  return *metrics;
}

// Destinations for which packets keep their source: the cluster's pods, by the configured CIDRs and the
// peers'.
std::vector<IpPrefix> Inside(const Config& config, const Plan& plan) {
  std::vector<IpPrefix> out = config.cluster_cidrs;
  for (const PeerPlan& peer : plan.peers) out.insert(out.end(), peer.pod_cidrs.begin(), peer.pod_cidrs.end());
  return out;
}

// A host with IPv6 forwarding ignores router advertisements and loses the routes from them, unless
// accept_ra is 2.
Result<> EnableForwarding(const Plan& plan, const HostState& host) {
  bool v6 =
      std::any_of(plan.pod_cidrs.begin(), plan.pod_cidrs.end(), [](const IpPrefix& c) { return !c.is_v4(); });
  KEELSON_RETURN_IF_ERROR(linux::EnsureSysctl("net/ipv4/ip_forward", "1"));
  if (!v6) return {};
  for (const netlink::Link& link : host.links) {
    if (link.index != plan.uplink) continue;
    std::string key = "net/ipv6/conf/" + link.name + "/accept_ra";
    if (Result<std::string> found = linux::ReadSysctl(key); found && *found == "1") {
      KEELSON_RETURN_IF_ERROR(linux::WriteSysctl(key, "2"));
    }
  }
  return linux::EnsureSysctl("net/ipv6/conf/all/forwarding", "1");
}

}  // namespace

Result<std::unique_ptr<Syncer>> Syncer::Open(const Config& config, Nodes nodes, Health& health,
                                             SyncerOptions options, Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, nft::OpenKernel());
  KEELSON_ASSIGN_OR_RETURN(netlink::Monitor monitor, netlink::Monitor::Open());
  return std::unique_ptr<Syncer>(new Syncer(config, std::move(nodes), health, options, clock,
                                            std::move(socket), std::move(nft), std::move(monitor)));
}

Syncer::Syncer(const Config& config, Nodes nodes, Health& health, SyncerOptions options, Clock& clock,
               netlink::Socket socket, std::unique_ptr<nft::Kernel> nft, netlink::Monitor monitor)
    : config_(config),
      nodes_(std::move(nodes)),
      health_(health),
      options_(options),
      clock_(clock),
      socket_(std::move(socket)),
      own_port_(socket_.port()),
      nft_(std::move(nft)),
      monitor_(std::move(monitor)) {}

void Syncer::AddExtension(std::unique_ptr<Extension> extension) {
  extensions_.push_back(std::move(extension));
}

void Syncer::NodesChanged() {
  MutexLock lock(mutex_);
  nodes_changed_ = true;
  changed_.notify_all();
}

uint64_t Syncer::syncs() const {
  MutexLock lock(mutex_);
  return syncs_;
}

void Syncer::AwaitSyncs(uint64_t count) {
  MutexLock lock(mutex_);
  while (syncs_ < count) changed_.wait(mutex_);
}

bool Syncer::Matters(const netlink::KernelEvent& event) const {
  using Kind = netlink::KernelEvent::Kind;
  if (event.author == own_port_ || event.link_local) return false;
  MutexLock lock(mutex_);
  switch (event.kind) {
    case Kind::kLost:
    case Kind::kAddress:
      return true;
    case Kind::kRoute:
      return event.table == 254;
    case Kind::kLink:  // other links belong to pods, and come and go
      return event.link_name == config_.vxlan_device || event.link_name == config_.wireguard_device ||
             watched_links_.contains(event.link_index);
    case Kind::kFilter:  // does not matter to the agent
      return false;
    case Kind::kNeighbor:
      return watched_links_.contains(-event.link_index);
  }
  return false;
}

Result<> Syncer::RunMonitor(std::stop_token stop) {
  while (!stop.stop_requested()) {
    auto events = monitor_.Wait(stop, std::chrono::hours(1));
    if (!events) {
      if (events.error().Is(Code::kTimeout)) continue;
      if (events.error().Is(Code::kCancelled)) break;
      return events.error();
    }
    if (std::none_of(events->begin(), events->end(), [&](const auto& event) { return Matters(event); })) {
      continue;
    }
    MutexLock lock(mutex_);
    kernel_changed_ = true;
    changed_.notify_all();
  }
  return {};
}

// Any transaction raises the generation, so one number shows that nothing has changed.
bool Syncer::NftTouched() {
  if (!nft_known_) return true;
  Result<uint32_t> generation = nft_->Generation();
  return !generation || *generation != nft_generation_;
}

Result<bool> Syncer::SyncNft(const Plan& plan) {
  KEELSON_ASSIGN_OR_RETURN(bool changed,
                           EnsureMasquerade(*nft_, MasqueradeRules(plan.pod_cidrs, Inside(config_, plan))));
  if (changed) M().changes.With({"masquerade", "set"}).Increment();
  KEELSON_ASSIGN_OR_RETURN(nft_generation_, nft_->Generation());
  nft_known_ = true;
  return changed;
}

Result<> Syncer::SyncLinks(const Plan& plan, const HostState& host, int link, Changes& changes) {
  KEELSON_ASSIGN_OR_RETURN(changes, Apply(socket_, config_, plan, host, link));
  if (plan.vxlan) {
    KEELSON_ASSIGN_OR_RETURN(netlink::Link tunnel, netlink::GetLink(socket_, plan.vxlan->device));
    link = tunnel.index;
  }
  {
    // Only neighbours on the tunnel matter, where the agent makes them: the set has its negative index too.
    MutexLock lock(mutex_);
    watched_links_ = {plan.uplink};
    if (link > 0) watched_links_.insert({link, -link});
  }
  if (!changes.refused.empty()) {
    const Error& first = changes.refused.front();
    return Error(first.code(),
                 std::to_string(changes.refused.size()) + " changes refused, the first: " + first.message(),
                 first.errnum());
  }
  return {};
}

void Syncer::ReportProblems(const Plan& plan) {
  std::set<std::string> now(plan.problems.begin(), plan.problems.end());
  for (const std::string& problem : now) {
    if (!problems_.contains(problem)) log::Warn("Left out", {{"problem", problem}});
  }
  for (const std::string& problem : problems_) {
    if (!now.contains(problem)) log::Info("No longer left out", {{"problem", problem}});
  }
  problems_ = std::move(now);
  M().problems.Set(static_cast<double>(problems_.size()));
}

void Syncer::ReportPlan(const Plan& plan, const Changes& changes) {
  for (const auto& [kind, number] : changes.set) M().changes.With({kind, "set"}).Add(number);
  for (const auto& [kind, number] : changes.deleted) M().changes.With({kind, "delete"}).Add(number);
  for (Way way : {Way::kHostGw, Way::kVxlan, Way::kIpsec, Way::kWireguard}) {
    auto found = plan.ways.find(way);
    M().routes.With({std::string(ToString(way))}).Set(found == plan.ways.end() ? 0 : found->second);
  }
  M().peers.Set(static_cast<double>(plan.peers.size()));
  M().mtu.Set(plan.pod_mtu);
}

Result<bool> Syncer::SyncOnce() {
  std::shared_ptr<const NodeMap> nodes = nodes_();
  if (!nodes) return Error(Code::kUnavailable, "Nodes are not known yet");
  KEELSON_ASSIGN_OR_RETURN(HostState host, ReadHost(socket_));
  KEELSON_ASSIGN_OR_RETURN(Plan plan, MakePlan(config_, *nodes, host));
  ReportProblems(plan);
  if (!forwarding_set_) {
    if (Result<> on = EnableForwarding(plan, host); !on) {
      log::Warn("Cannot switch forwarding on", {{"err", on.error()}});
    }
    forwarding_set_ = true;
  }
  int link = 0;
  int extended = 0;
  for (auto& extension : extensions_) {
    KEELSON_ASSIGN_OR_RETURN(int made, extension->BeforeRoutes(plan, *nodes, link));
    extended += made;
  }
  Changes changes;
  Result<> linked = SyncLinks(plan, host, link, changes);
  ReportPlan(plan, changes);
  KEELSON_ASSIGN_OR_RETURN(bool rules_changed, SyncNft(plan));
  KEELSON_RETURN_IF_ERROR(linked);
  for (auto& extension : extensions_) {
    KEELSON_ASSIGN_OR_RETURN(int made, extension->AfterRoutes(plan, *nodes));
    extended += made;
  }
  if (extended > 0) changes.set["extension"] += extended;
  KEELSON_ASSIGN_OR_RETURN(bool written, WriteConflist(config_, ConflistText(config_, plan)));
  if (written) {
    log::Info("CNI configuration written", {{"path", config_.ConflistPath()}, {"mtu", plan.pod_mtu}});
  }
  if (changes.total() > 0 || rules_changed) {
    auto count = [](const std::map<std::string, int>& of, const char* kind) {
      auto found = of.find(kind);
      return found == of.end() ? 0 : found->second;
    };
    log::Info("Kernel brought in line", {{"peers", plan.peers.size()},
                                         {"routes_set", count(changes.set, "route")},
                                         {"routes_deleted", count(changes.deleted, "route")},
                                         {"changes", changes.total()},
                                         {"rules", rules_changed}});
  }
  return changes.total() > 0 || rules_changed;
}

// False when the stop comes; otherwise `cause` says why to sync.
bool Syncer::AwaitCause(SteadyTime resync_at, std::stop_token stop, std::string& cause) {
  SteadyTime poll_at = clock_.SteadyNow() + options_.nft_poll;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (!stop.stop_requested() && !nodes_changed_ && !kernel_changed_ &&
             clock_.SteadyNow() < std::min(resync_at, poll_at)) {
        clock_.WaitUntil(mutex_, changed_, std::min(resync_at, poll_at));
      }
      if (stop.stop_requested()) return false;
      cause = nodes_changed_ ? "nodes" : kernel_changed_ ? "kernel" : "";
      if (cause.empty() && clock_.SteadyNow() >= resync_at) cause = "resync";
      if (!cause.empty()) {
        nodes_changed_ = kernel_changed_ = false;
        return true;
      }
    }
    poll_at = clock_.SteadyNow() + options_.nft_poll;
    if (nft_known_ && NftTouched()) {
      cause = "rules";
      return true;
    }
  }
}

Result<> Syncer::Run(std::stop_token stop) {
  std::stop_callback on_stop(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  {
    // Until the first list there is nothing to compare with, so nothing to repair.
    MutexLock lock(mutex_);
    while (!stop.stop_requested() && !nodes_changed_) changed_.wait(mutex_);
  }
  SteadyTime next = clock_.SteadyNow();
  auto retry = options_.retry;
  std::string cause;
  std::string last_failure;
  while (AwaitCause(next, stop, cause)) {
    SteadyTime begin = clock_.SteadyNow();
    Result<bool> result = SyncOnce();
    M().duration.Observe(std::chrono::duration<double>(clock_.SteadyNow() - begin).count());
    M().syncs.With({result ? "success" : "failure"}).Increment();
    if (result) {
      if (*result && cause != "nodes" && syncs() > 0) {
        M().repairs.Increment();
        log::Warn("Put right what somebody else had changed", {{"seen_by", cause}});
      }
      health_.Synced();
      retry = options_.retry;
      last_failure.clear();
      next = clock_.SteadyNow() + options_.resync;
      MutexLock lock(mutex_);
      ++syncs_;
      changed_.notify_all();
    } else {
      health_.Failed(result.error());
      if (result.error().message() != last_failure) {
        log::Warn("Sync failed, will be retried", {{"err", result.error()}});
      }
      last_failure = result.error().message();
      next = clock_.SteadyNow() + retry;
      retry = std::min(retry * 2, options_.resync);
    }
    // Wait a moment, to handle bursts (a hundred nodes, an address list) in one sync.
    MutexLock lock(mutex_);
    SteadyTime quiet = clock_.SteadyNow() + options_.min_interval;
    while (!stop.stop_requested() && clock_.SteadyNow() < quiet) clock_.WaitUntil(mutex_, changed_, quiet);
  }
  return {};
}

}  // namespace keelson::cni::agent
