#include "proxy/sync/proxier.h"

#include <malloc.h>

#include <algorithm>

#include "lib/api/codec/text_forms.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/log.h"
#include "lib/base/wall_time.h"
#include "proxy/serving/metrics.h"
#include "proxy/sync/proxier_batch.h"

namespace keelson::proxy {
namespace {

constexpr char kTriggerTime[] = "endpoints.kubernetes.io/last-change-trigger-time";
constexpr std::chrono::seconds kFirstRetry{1}, kLastRetry{30};
constexpr size_t kManyChanges = 1000;

// When what a slice tells of began, as the EndpointSlice controller saw it.
std::optional<WallTime> TriggerTime(const discoveryv1::EndpointSlice& slice) {
  auto found = slice.metadata().annotations().find(kTriggerTime);
  if (found == slice.metadata().annotations().end()) return std::nullopt;
  Result<api::Instant> at = api::ParseTime(found->second, false);
  if (!at) return std::nullopt;
  return WallTimeOf(at->seconds, at->nanos);
}

}  // namespace

Proxier::Proxier(ProxierOptions options, DataplaneMode mode, ReadIps read_ips, Warn warn, Health& health,
                 Clock& clock)
    : options_(std::move(options)),
      read_ips_(std::move(read_ips)),
      warn_(std::move(warn)),
      health_(health),
      clock_(clock),
      started_(clock.Now()),
      services_(NodeTopology{options_.node_name, ""}, options_.external_ips),
      mode_(std::move(mode)),
      health_checks_(health, options_.node_name, [this](const std::string& key, const std::string& message) {
        warn_(key, "FailedToStartServiceHealthcheck", message);
      }) {}
Proxier::~Proxier() = default;

void Proxier::Wake() {
  pending_ = true;
  health_.Queued();
  for (bool v4 : {true, false}) MetricsOf(v4).last_queued.Set(Stamp(clock_.Now()));
  wake_.notify_all();
}

void Proxier::OnService(const std::string& key, const corev1::Service* service) {
  MutexLock lock(mutex_);
  if (!services_.UpdateService(key, service)) return;
  MetricsOfChanges().services.Increment();
  MetricsOfChanges().services_pending.Add(1);
  if (synced_) Wake();
}

void Proxier::OnSlice(const std::string& key, const discoveryv1::EndpointSlice* slice) {
  std::optional<WallTime> trigger = slice ? TriggerTime(*slice) : std::nullopt;
  MutexLock lock(mutex_);
  if (!services_.UpdateSlice(key, slice)) return;
  if (trigger && *trigger > started_) triggers_.push_back(*trigger);
  MetricsOfChanges().endpoints.Increment();
  MetricsOfChanges().endpoints_pending.Add(1);
  if (synced_) Wake();
}

void Proxier::OnNode(const corev1::Node* node) {
  health_.SetNodeEligible(node && IsEligible(*node));
  if (!node) return;  // while it is away, what is known of it holds
  NodeFacts facts = FactsOf(*node);
  MutexLock lock(mutex_);
  if (facts == node_) return;
  services_.SetNodeTopology({options_.node_name, facts.zone});
  if (options_.pods_of_node_cidr && facts.pod_cidrs != node_.pod_cidrs) services_.MarkAllChanged();
  addresses_changed_ = addresses_changed_ || facts.ips != node_.ips;
  node_ = std::move(facts);
  if (synced_) Wake();
}

void Proxier::OnServiceCidr(const std::string& key, const api::networking::v1::ServiceCIDR* cidr) {
  std::vector<IpPrefix> prefixes;
  if (cidr) {
    for (const std::string& text : cidr->spec().cidrs()) {
      if (Result<IpPrefix> prefix = IpPrefix::Parse(text)) prefixes.push_back(prefix->Masked());
    }
  }
  MutexLock lock(mutex_);
  if (prefixes.empty()) {
    if (service_cidrs_.erase(key) == 0) return;
  } else {
    if (service_cidrs_[key] == prefixes) return;
    service_cidrs_[key] = std::move(prefixes);
  }
  if (synced_) Wake();
}

void Proxier::MarkSynced() {
  MutexLock lock(mutex_);
  synced_ = true;
  Wake();
}

void Proxier::OnTables(const nft::Monitor::Changes& changes) {
  MutexLock lock(mutex_);
  bool ours = changes.lost;
  look_at_tables_ = look_at_tables_ || changes.lost;
  for (const nft::TableChange& change : changes.tables) {
    auto is_own = [&](const OwnTable& own) { return own.author == change.author; };
    if (std::any_of(own_tables_.begin(), own_tables_.end(), is_own)) continue;
    for (const OwnTable& own : own_tables_) {
      if (change.family != own.table.family || change.table != own.table.name) continue;
      (change.family == nft::Family::kIpv4 ? tampered_v4_ : tampered_v6_) = true;
      ours = true;
    }
  }
  if (ours && synced_) Wake();
}

void Proxier::TablesWatched(bool watched) {
  MutexLock lock(mutex_);
  watched_ = watched;
  look_at_tables_ = true;  // nobody knows what happened before
  if (synced_) Wake();
}

bool Proxier::AwaitFirstSync(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    wake_.notify_all();
  });
  MutexLock lock(mutex_);
  while (!written_ && !stop.stop_requested()) wake_.wait(mutex_);
  return written_;
}

void Proxier::OnAddressesChanged() {
  MutexLock lock(mutex_);
  addresses_changed_ = true;
  if (synced_) Wake();
}

void Proxier::Switch(DataplaneMode mode) {
  MutexLock lock(mutex_);
  next_mode_ = std::move(mode);
  services_.MarkAllChanged();
  if (synced_) Wake();
}

std::optional<Proxier::Batch> Proxier::NextBatch(std::stop_token stop, SteadyTime periodic_at) {
  const SteadyTime until =
      std::min({periodic_at, again_at_.value_or(periodic_at), retire_at_.value_or(periodic_at)});
  MutexLock lock(mutex_);
  while (!stop.stop_requested() && !(synced_ && (pending_ || clock_.SteadyNow() >= until))) {
    clock_.WaitUntil(mutex_, wake_, synced_ ? until : clock_.SteadyNow() + std::chrono::hours(1));
  }
  if (stop.stop_requested()) return std::nullopt;
  Batch batch{.node = node_};
  batch.periodic = clock_.SteadyNow() >= periodic_at;
  pending_ = false;
  for (const std::string& key : services_.TakeChanged()) {
    batch.changes.push_back({key, services_.Resolve(key, true), services_.Resolve(key, false)});
  }
  for (const auto& [key, cidrs] : service_cidrs_) {
    batch.service_cidrs.insert(batch.service_cidrs.end(), cidrs.begin(), cidrs.end());
  }
  batch.health_checks = services_.HealthCheckNodePorts();
  batch.triggers = std::exchange(triggers_, {});
  batch.next_mode = std::exchange(next_mode_, std::nullopt);
  batch.look_at_tables = std::exchange(look_at_tables_, false) || (batch.periodic && !watched_);
  batch.tampered_v4 = std::exchange(tampered_v4_, false);
  batch.tampered_v6 = std::exchange(tampered_v6_, false);
  batch.addresses_changed = std::exchange(addresses_changed_, false) || batch.periodic;
  MetricsOfChanges().services_pending.Set(0);
  MetricsOfChanges().endpoints_pending.Set(0);
  return batch;
}

// After a failure: what the batch knew and no plan has taken must come again.
void Proxier::Requeue(const Batch& batch) {
  MutexLock lock(mutex_);
  if (dataplanes_.empty()) services_.MarkAllChanged();
  look_at_tables_ = look_at_tables_ || batch.look_at_tables;
  tampered_v4_ = tampered_v4_ || batch.tampered_v4;
  tampered_v6_ = tampered_v6_ || batch.tampered_v6;
  triggers_.insert(triggers_.begin(), batch.triggers.begin(), batch.triggers.end());
}

void Proxier::WaitMinSyncPeriod(std::stop_token stop) {
  if (options_.min_sync_period.count() == 0) return;
  MutexLock lock(mutex_);
  SteadyTime until = clock_.SteadyNow() + options_.min_sync_period;
  while (!stop.stop_requested() && clock_.SteadyNow() < until) clock_.WaitUntil(mutex_, wake_, until);
}

void Proxier::Finish() {
  health_.Synced();
  MutexLock lock(mutex_);
  written_ = true;
  wake_.notify_all();
  if (pending_) health_.Queued();
}

Result<> Proxier::Run(std::stop_token stop, const std::function<void()>& ready) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    wake_.notify_all();
  });
  bool first = true;
  size_t since_trim = 0;  // changes
  std::chrono::seconds retry = kFirstRetry;
  SteadyTime periodic_at = clock_.SteadyNow() + options_.sync_period;
  while (std::optional<Batch> batch = NextBatch(stop, periodic_at)) {
    if (batch->periodic) periodic_at = clock_.SteadyNow() + options_.sync_period;
    if (options_.pods_of_node_cidr && batch->node.pod_cidrs != pod_cidrs_) dataplanes_.clear();
    if (batch->next_mode) BeginSwitch(*std::move(batch->next_mode), batch->node);
    if (dataplanes_.empty()) OpenDataplanes(batch->node);
    Result<> applied =
        dataplanes_.empty() ? Result<>(Error(Code::kUnavailable, "no " + mode_.name)) : Apply(*batch);
    if (!applied) {
      Requeue(*batch);
      log::Error("Service rules are not in sync",
                 {{"err", applied.error()}, {"retry_seconds", retry.count()}});
      periodic_at = std::min(periodic_at, clock_.SteadyNow() + retry);
      again_at_.reset();
      if (retire_at_) retire_at_ = periodic_at;
      retry = std::min(retry * 2, kLastRetry);
      continue;
    }
    retry = kFirstRetry;
    Finish();
    RetireOthers();
    if (first) ready();
    first = false;
    // What many changes took for a moment, or have left behind, lies between what stays.
    since_trim += batch->changes.size();
    const bool trim =
        since_trim >= kManyChanges && (batch->periodic || batch->changes.size() >= kManyChanges);
    batch.reset();
    if (trim) {
      ::malloc_trim(0);
      since_trim = 0;
    }
    WaitMinSyncPeriod(stop);
  }
  return {};
}

}  // namespace keelson::proxy
