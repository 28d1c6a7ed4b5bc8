#include "cni/agent/policy/syncer.h"

#include <sys/random.h>

#include <algorithm>

#include "cni/agent/policy/tables.h"
#include "lib/base/log.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/metrics/metrics.h"
#include "lib/nft/diff.h"

namespace keelson::cni::agent {
namespace {

struct Metrics {
  metrics::Family& syncs =
      metrics::Counter("keelson_cni_policy_sync_total", "Syncs of network policies by result.", {"result"});
  metrics::Histogram& duration = metrics::Histograms("keelson_cni_policy_sync_duration_seconds",
                                                     "How long a sync of network policies takes.",
                                                     metrics::ExponentialBuckets(0.0005, 2, 16))
                                     .HistogramWith();
  metrics::Value& policies =
      metrics::Gauge("keelson_cni_network_policies", "NetworkPolicies of the cluster.").With();
  metrics::Value& problems = metrics::Gauge("keelson_cni_network_policy_problems",
                                            "Parts of NetworkPolicies that permit nothing as invalid.")
                                 .With();
  metrics::Value& isolated = metrics::Gauge("keelson_cni_policy_isolated_addresses",
                                            "Addresses of this node's pods that policies isolate.")
                                 .With();
  metrics::Value& ready = metrics::Gauge("keelson_cni_policy_ready_addresses",
                                         "Addresses of this node's pods that may be reached.")
                              .With();
};

Metrics& M() {
  static auto* metrics = new Metrics;
  return *metrics;
}

uint32_t RandomEpoch() {
  uint32_t out = 0;
  (void)::getrandom(&out, sizeof out, 0);
  return out;
}

bool IsIn(const nft::Ruleset& found, const nft::Set& set, const IpAddress& address) {
  auto there = found.sets.find(set.name);
  return there != found.sets.end() && there->second.elements.contains(nft::Key().Ip(address).bytes());
}

}  // namespace

Result<std::unique_ptr<PolicySyncer>> PolicySyncer::Open(const std::string& bridge, PolicySources sources,
                                                         PolicySyncerOptions options, Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, nft::OpenKernel());
  return std::unique_ptr<PolicySyncer>(
      new PolicySyncer(bridge, std::move(sources), options, clock, std::move(socket), std::move(nft)));
}

PolicySyncer::PolicySyncer(std::string bridge, PolicySources sources, PolicySyncerOptions options,
                           Clock& clock, netlink::Socket socket, std::unique_ptr<nft::Kernel> nft)
    : bridge_(std::move(bridge)),
      sources_(std::move(sources)),
      options_(options),
      clock_(clock),
      socket_(std::move(socket)),
      nft_(std::move(nft)) {}

void PolicySyncer::Changed() {
  MutexLock lock(mutex_);
  changed_ = true;
  wake_.notify_all();
}

void PolicySyncer::Requested() {
  MutexLock lock(mutex_);
  requested_ = true;
  wake_.notify_all();
}

bool PolicySyncer::IsReady(const IpAddress& address, uint32_t epoch) const {
  MutexLock lock(mutex_);
  auto found = ready_.find(address);
  return found != ready_.end() && found->second.epoch == epoch;
}

// Pods from before policies were enforced get an attachment from what the API says.
void PolicySyncer::Adopt(const policy::Cluster& cluster, const policy::Node& node,
                         policy::Attachments& attachments) {
  for (auto& [address, uid] : policy::Unattached(cluster, node.name, node.pod_cidrs, attachments)) {
    attachments[address] = {.uid = uid, .epoch = RandomEpoch()};
  }
}

Result<> PolicySyncer::Apply(const policy::Plan& plan, bool& changed) {
  nft::Transaction changes = nft::Diff(found_, plan.rules);
  for (const auto& [address, attachment] : plan.ready) {
    if (found_ && IsIn(*found_, dataplane::ReadyPods(address.is_v4()), address)) continue;
    // Refused if the address has been attached to another pod since the table was read.
    changes.AddElements(dataplane::AttachedPods(address.is_v4()), {policy::ElementOf(address, attachment)});
  }
  changed = !changes.empty();
  return nft_->Apply(changes);
}

Result<bool> PolicySyncer::SyncPolicies(const policy::Node& node, bool reread) {
  for (int attempt = 1;; ++attempt) {
    if (reread || !in_step_) {
      KEELSON_ASSIGN_OR_RETURN(found_, nft_->Read(dataplane::PolicyTable()));
    }
    policy::Plan plan;
    bool known = sources_.cluster([&](const policy::Cluster& cluster) {
      policy::Attachments attachments = found_ ? policy::AttachmentsOf(*found_) : policy::Attachments();
      Adopt(cluster, node, attachments);
      plan = policy::MakePlan(cluster, node, attachments);
      ReportProblems(cluster);
    });
    if (!known) return Error(Code::kUnavailable, "Pods, Namespaces and NetworkPolicies are not known yet");
    bool changed = false;
    in_step_ = false;
    Result<> applied = Apply(plan, changed);
    if (!applied) {
      if (!IsRace(applied.error()) || attempt == kWriteAttempts) return applied.error();
      continue;
    }
    in_step_ = true;
    if (changed) ++written_;
    M().isolated.Set(static_cast<double>(plan.isolated));
    M().ready.Set(static_cast<double>(plan.ready.size()));
    found_ = std::move(plan.rules);
    MutexLock lock(mutex_);
    ready_ = std::move(plan.ready);
    return changed;
  }
}

void PolicySyncer::ReportProblems(const policy::Cluster& cluster) {
  std::set<std::string> now;
  for (const auto& [key, policy] : cluster.policies) {
    for (const std::string& problem : policy.problems) now.insert(key + ": " + problem);
  }
  for (const std::string& problem : now) {
    if (!problems_.contains(problem)) log::Warn("A NetworkPolicy is invalid", {{"problem", problem}});
  }
  problems_ = std::move(now);
  M().policies.Set(static_cast<double>(cluster.policies.size()));
  M().problems.Set(static_cast<double>(problems_.size()));
}

Result<bool> PolicySyncer::SyncOnce(bool reread) {
  KEELSON_ASSIGN_OR_RETURN(policy::Node node, sources_.node());
  // Whatever others write from here on shows in the generation, and is read the next time.
  KEELSON_ASSIGN_OR_RETURN(const uint32_t before, nft_->Generation());
  if (before != generation_) reread = true;
  generation_ = 0;
  written_ = 0;
  bool ports = false;
  // Frames of pods go to the node before anything lets their packets through.
  if (reread || !in_step_) {
    KEELSON_ASSIGN_OR_RETURN(ports, SyncPorts(*nft_, socket_, bridge_));
    if (ports) ++written_;
  }
  KEELSON_ASSIGN_OR_RETURN(bool policies, SyncPolicies(node, reread));
  KEELSON_ASSIGN_OR_RETURN(const uint32_t now, nft_->Generation());
  if (now == before + written_) generation_ = now;
  return ports || policies;
}

// False when the stop comes.
bool PolicySyncer::AwaitCause(SteadyTime next, SteadyTime resync_at, std::stop_token stop, bool& reread) {
  SteadyTime poll_at = clock_.SteadyNow() + options_.nft_poll;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (!stop.stop_requested()) {
        SteadyTime now = clock_.SteadyNow();
        bool due = (changed_ || requested_) && now >= next;
        if (due || now >= std::min(resync_at, poll_at)) break;
        SteadyTime until = changed_ || requested_ ? next : std::min(resync_at, poll_at);
        clock_.WaitUntil(mutex_, wake_, std::min(until, std::min(resync_at, poll_at)));
      }
      if (stop.stop_requested()) return false;
      bool resync = clock_.SteadyNow() >= resync_at;
      reread = requested_ || resync;
      bool due = changed_ || requested_ || resync;
      if (due) {
        changed_ = requested_ = false;
        return true;
      }
    }
    poll_at = clock_.SteadyNow() + options_.nft_poll;
    Result<uint32_t> now = nft_->Generation();
    if (now && *now == generation_) continue;
    reread = true;
    return true;
  }
}

Result<> PolicySyncer::Run(std::stop_token stop) {
  std::stop_callback on_stop(stop, [this] {
    MutexLock lock(mutex_);
    wake_.notify_all();
  });
  {
    MutexLock lock(mutex_);
    while (!stop.stop_requested() && !changed_) wake_.wait(mutex_);
  }
  SteadyTime next = clock_.SteadyNow(), resync_at = next;
  auto retry = options_.retry;
  std::string last_failure;
  bool reread = true;
  while (AwaitCause(next, resync_at, stop, reread)) {
    SteadyTime begin = clock_.SteadyNow();
    Result<bool> result = SyncOnce(reread || !last_failure.empty());
    auto took = clock_.SteadyNow() - begin;
    M().duration.Observe(std::chrono::duration<double>(took).count());
    M().syncs.With({result ? "success" : "failure"}).Increment();
    next = clock_.SteadyNow() + std::max<SteadyTime::duration>(options_.min_interval, took);
    sources_.on_sync(result ? Result<>() : result.error());
    if (result) {
      last_failure.clear();
      retry = options_.retry;
      resync_at = clock_.SteadyNow() + options_.resync;
      if (*result) log::Debug("Network policies brought in line", {{"reread", reread}});
      continue;
    }
    if (result.error().message() != last_failure) {
      // While the API server is away, what is in place goes on.
      log::Write(result.error().Is(Code::kUnavailable) ? log::Level::kInfo : log::Level::kError,
                 "Network policies cannot be brought in line, will be retried", {{"err", result.error()}});
    }
    last_failure = result.error().message();
    next = clock_.SteadyNow() + retry;
    resync_at = next;
    retry = std::min(2 * retry, options_.resync);
  }
  return {};
}

}  // namespace keelson::cni::agent
