#include "cni/agent/policy/syncer.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cni/agent/policy/tables.h"
#include "cni/policy/steps.h"
#include "lib/base/log.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/metrics/metrics.h"
#include "lib/netlink/conntrack.h"
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
  metrics::Histogram& programming =
      metrics::Histograms("keelson_cni_policy_programming_duration_seconds",
                          "Time from a change of the cluster to the end of the transaction that enforces it.",
                          metrics::ExponentialBuckets(0.0005, 2, 16))
          .HistogramWith();
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

bool IsReadyIn(const std::optional<nft::Ruleset>& found, const IpAddress& address) {
  if (!found) return false;
  auto there = found->sets.find(dataplane::ReadyPods(address.is_v4()).name);
  return there != found->sets.end() && there->second.elements.contains(nft::Key().Ip(address).bytes());
}

// Pods from before policies were enforced get an attachment from what the API says.
void Adopt(policy::Incremental& plan) {
  std::map<IpAddress, std::string> unattached = plan.Unattached();
  if (unattached.empty()) return;
  policy::Attachments attachments = plan.attachments();
  for (auto& [address, uid] : unattached) attachments[address] = {.uid = uid, .epoch = RandomEpoch()};
  plan.SetAttachments(attachments);
}

}  // namespace

Result<std::unique_ptr<PolicySyncer>> PolicySyncer::Open(const std::string& bridge, PolicySources sources,
                                                         PolicySyncerOptions options, Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket netfilter, netlink::Socket::OpenNetfilter());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, nft::OpenKernel());
  return std::unique_ptr<PolicySyncer>(new PolicySyncer(
      bridge, std::move(sources), options, clock, std::move(socket), std::move(netfilter), std::move(nft)));
}

PolicySyncer::PolicySyncer(std::string bridge, PolicySources sources, PolicySyncerOptions options,
                           Clock& clock, netlink::Socket socket, netlink::Socket netfilter,
                           std::unique_ptr<nft::Kernel> nft)
    : bridge_(std::move(bridge)),
      sources_(std::move(sources)),
      options_(options),
      clock_(clock),
      socket_(std::move(socket)),
      netfilter_(std::move(netfilter)),
      nft_(std::move(nft)),
      problems_(sources_.on_event) {}

void PolicySyncer::Changed() {
  SteadyTime now = clock_.SteadyNow();
  MutexLock lock(mutex_);
  if (!changed_) changed_ = now;
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

PolicySyncer::Write PolicySyncer::PlanAll(policy::Incremental& plan,
                                          const std::optional<nft::Ruleset>& found) {
  plan.SetAttachments(found ? policy::AttachmentsOf(*found) : policy::Attachments());
  Adopt(plan);
  policy::Plan all = policy::MakePlan(plan.cluster(), *node_, plan.attachments());
  plan.Forget();
  Write out{.transaction = nft::Diff(found, all.rules), .isolated = all.isolated};
  out.ready_count = all.ready.size();
  for (const auto& entry : all.ready) {
    if (!IsReadyIn(found, entry.first)) out.added.insert(entry);
  }
  out.ready = std::move(all.ready);
  return out;
}

PolicySyncer::Write PolicySyncer::PlanChanges(policy::Incremental& plan,
                                              const std::optional<nft::Ruleset>& found) {
  if (found) plan.SetAttachments(policy::AttachmentsOf(*found));
  Adopt(plan);
  policy::Incremental::Changes changes = plan.Take(found ? &*found : nullptr);
  Write out{.transaction = std::move(changes.transaction), .isolated = plan.isolated()};
  out.ready_count = plan.ready().size();
  if (found) {
    for (const auto& entry : plan.ready()) {
      if (!IsReadyIn(found, entry.first)) out.added.insert(entry);
    }
  } else {
    for (const auto& [address, attachment] : changes.ready) {
      if (attachment) out.added.emplace(address, *attachment);
    }
  }
  out.ready_changes = std::move(changes.ready);
  return out;
}

// The sets that plugins write; nullopt when the table is not what it should be.
Result<std::optional<nft::Ruleset>> PolicySyncer::ReadWhatPluginsWrite() {
  std::vector<std::string> names;
  for (bool v4 : {true, false}) {
    // In this order: who is ready in the second has been attached as the first says, or is refused below.
    names.push_back(dataplane::AttachedPods(v4).name);
    names.push_back(dataplane::ReadyPods(v4).name);
  }
  Result<std::optional<nft::Ruleset>> found = nft_->ReadSets(dataplane::PolicyTable(), names);
  if (found && *found && (*found)->sets.size() != names.size()) found->reset();
  return found;
}

void PolicySyncer::Committed(Write write) {
  M().isolated.Set(static_cast<double>(write.isolated));
  M().ready.Set(static_cast<double>(write.ready_count));
  MutexLock lock(mutex_);
  if (write.ready) ready_ = std::move(*write.ready);
  for (auto& [address, attachment] : write.ready_changes) {
    ready_.erase(address);
    if (attachment) ready_.emplace(address, std::move(*attachment));
  }
}

// An established connection passes without a look at its policies. One of a pod that has gone is not to be that of
// the pod that has its address now. Of this node's pods the plugin does the same.
void PolicySyncer::ForgetFormerPods() {
  if (handed_over_.empty()) return;
  auto forget = [&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(const auto flows, netlink::ListFlowsOf(netfilter_, handed_over_));
    for (const netlink::Flow& flow : flows) {
      KEELSON_ASSIGN_OR_RETURN(const bool deleted, netlink::DeleteFlow(netfilter_, flow));
      (void)deleted;
    }
    return {};
  };
  if (Result<> forgotten = forget(); !forgotten) {
    log::Warn("Connections of former pods are still tracked, will be retried", {{"err", forgotten.error()}});
    return;
  }
  handed_over_.clear();
}

Result<bool> PolicySyncer::SyncPolicies(bool whole, bool foreign) {
  for (int attempt = 1;; ++attempt) {
    std::optional<nft::Ruleset> found;
    if (!whole && foreign) {
      KEELSON_ASSIGN_OR_RETURN(found, ReadWhatPluginsWrite());
      whole = !found;
    }
    if (whole) {
      KEELSON_ASSIGN_OR_RETURN(found, nft_->Read(dataplane::PolicyTable()));
    }
    Write write{.transaction = nft::Transaction(dataplane::PolicyTable())};
    bool known = sources_.plan([&](policy::Incremental& plan) {
      if (plan.SetNode(*node_) && !whole) {
        whole = true;
        return;
      }
      write = whole ? PlanAll(plan, found) : PlanChanges(plan, found);
      handed_over_.merge(plan.TakeHandedOver());
      problems_.Report(plan, write.ready || !write.ready_changes.empty());
    });
    if (!known) return Error(Code::kUnavailable, "Pods, Namespaces and NetworkPolicies are not known yet");
    if (whole && !write.ready) continue;  // a new plan needs the whole table
    for (const auto& [address, attachment] : write.added) {
      // Refused if the address has been attached to another pod since the table was read.
      write.transaction.AddElements(dataplane::AttachedPods(address.is_v4()),
                                    {policy::ElementOf(address, attachment)});
    }
    const bool changed = !write.transaction.empty();
    in_step_ = false;
    const policy::Steps steps =
        policy::InSteps(std::exchange(write.transaction, nft::Transaction(dataplane::PolicyTable())));
    Result<> applied;
    if (!steps.unseen.empty()) {
      applied = nft_->Apply(steps.unseen);
      if (applied) ++written_;
    }
    if (applied) applied = nft_->Apply(steps.decisive);
    if (!applied) {
      if (!IsRace(applied.error()) || attempt == kWriteAttempts) return applied.error();
      whole = true;
      continue;
    }
    in_step_ = true;
    if (!steps.decisive.empty()) ++written_;
    Committed(std::move(write));
    ForgetFormerPods();
    return changed;
  }
}

// Frames of pods go to the node before anything lets their packets through.
Result<bool> PolicySyncer::SyncBridge(bool whole) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> mac, BridgeMac(socket_, bridge_));
  if (!whole && mac == bridge_mac_) return false;
  bridge_mac_.reset();
  KEELSON_ASSIGN_OR_RETURN(bool wrote, SyncPorts(*nft_, socket_, bridge_));
  bridge_mac_ = std::move(mac);
  if (wrote) ++written_;
  return wrote;
}

Result<bool> PolicySyncer::SyncOnce(bool whole) {
  KEELSON_ASSIGN_OR_RETURN(policy::Node node, sources_.node());
  whole = whole || !in_step_ || !node_ || !(*node_ == node);
  node_ = std::move(node);
  // Whatever others write from here on shows in the generation, and is read the next time.
  KEELSON_ASSIGN_OR_RETURN(const uint32_t before, nft_->Generation());
  const bool foreign = before != generation_;
  unverified_ = unverified_ || foreign;
  generation_ = 0;
  written_ = 0;
  bool ports = false;
  if (whole || foreign) {
    KEELSON_ASSIGN_OR_RETURN(ports, SyncBridge(whole));
  }
  KEELSON_ASSIGN_OR_RETURN(bool policies, SyncPolicies(whole, foreign));
  KEELSON_ASSIGN_OR_RETURN(const uint32_t now, nft_->Generation());
  if (now == before + written_) generation_ = now;
  // Only a sync that was whole from the start has looked at both tables.
  if (whole) unverified_ = false;
  return ports || policies;
}

void PolicySyncer::ReportFailure(const Error& error) {
  policy::Attachments ready;
  {
    MutexLock lock(mutex_);
    ready = ready_;
  }
  sources_.plan([&](policy::Incremental& plan) {
    if (plan.has_node()) problems_.ReportFailure(plan, ready, error);
  });
}

// False when the stop comes.
bool PolicySyncer::AwaitCause(SteadyTime next, SteadyTime resync_at, std::stop_token stop, bool& whole) {
  for (;;) {
    bool due = false;
    {
      MutexLock lock(mutex_);
      while (!stop.stop_requested()) {
        SteadyTime now = clock_.SteadyNow(), timer = std::min(resync_at, poll_at_);
        bool pending = changed_ || requested_;
        if ((pending && now >= next) || now >= timer) break;
        clock_.WaitUntil(mutex_, wake_, pending ? std::min(next, timer) : timer);
      }
      if (stop.stop_requested()) return false;
      whole = clock_.SteadyNow() >= resync_at;
      due = whole || ((changed_ || requested_) && clock_.SteadyNow() >= next);
    }
    // In a busy cluster too, what others have written is looked at in time.
    if (clock_.SteadyNow() >= poll_at_) {
      poll_at_ = clock_.SteadyNow() + options_.nft_poll;
      Result<uint32_t> now = nft_->Generation();
      whole = whole || unverified_ || !now || *now != generation_;
    }
    if (due || whole) return true;
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
  poll_at_ = next + options_.nft_poll;
  auto retry = options_.retry;
  std::string last_failure;
  bool whole = true;
  while (AwaitCause(next, resync_at, stop, whole)) {
    SteadyTime begin = clock_.SteadyNow();
    std::optional<SteadyTime> changed;
    {
      MutexLock lock(mutex_);
      changed = std::exchange(changed_, std::nullopt);
      requested_ = false;
    }
    whole = whole || !last_failure.empty();
    Result<bool> result = SyncOnce(whole);
    SteadyTime end = clock_.SteadyNow();
    M().duration.Observe(std::chrono::duration<double>(end - begin).count());
    if (changed && result) M().programming.Observe(std::chrono::duration<double>(end - *changed).count());
    M().syncs.With({result ? "success" : "failure"}).Increment();
    next = end + std::max<SteadyTime::duration>(options_.min_interval, end - begin);
    sources_.on_sync(result ? Result<>() : result.error());
    if (result) {
      if (!last_failure.empty()) problems_.Recovered();
      last_failure.clear();
      retry = options_.retry;
      if (whole) resync_at = end + options_.resync;
      if (*result) log::Debug("Network policies brought in line", {{"whole", whole}});
      continue;
    }
    if (result.error().message() != last_failure) {
      // While the API server is away, what is in place goes on.
      log::Write(result.error().Is(Code::kUnavailable) ? log::Level::kInfo : log::Level::kError,
                 "Network policies cannot be brought in line, will be retried", {{"err", result.error()}});
    }
    if (!result.error().Is(Code::kUnavailable)) ReportFailure(result.error());
    last_failure = result.error().message();
    next = end + retry;
    resync_at = next;
    retry = std::min(2 * retry, options_.resync);
  }
  return {};
}

}  // namespace keelson::cni::agent
