#include "proxy/announce/announcer.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "proxy/model/node_facts.h"

namespace keelson::proxy {
namespace {

using coordinationv1::Lease;
using google::protobuf::util::MessageDifferencer;

constexpr char kLabel[] = "keelson.dev/announces", kLabelValue[] = "load-balancer-addresses";
constexpr char kExcluded[] = "node.kubernetes.io/exclude-from-external-load-balancers";
constexpr char kServiceName[] = "kubernetes.io/service-name";
constexpr uint32_t kSharedLeases = 4;
constexpr std::chrono::minutes kLongest{10};

std::string SharedLease(const std::string& service) {
  uint32_t hash = 2166136261u;
  for (char c : service) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return "load-balancer-shared-" + std::to_string((hash ^ hash >> 16) % kSharedLeases);
}

}  // namespace

bool MayAnnounce(const corev1::Node& node) {
  if (!IsEligible(node) || node.metadata().labels().contains(kExcluded)) return false;
  const auto& conditions = node.status().conditions();
  return std::none_of(conditions.begin(), conditions.end(), [](const corev1::NodeCondition& condition) {
    return condition.type() == "NetworkUnavailable" && condition.status() == "True";
  });
}

Announcer::Announcer(AnnouncerOptions options, client::RestClient api, client::InformerFactory& leases,
                     Responder& responder, Clock& clock)
    : options_(std::move(options)),
      api_(std::move(api)),
      leases_(leases.Get<Lease>({.label_selector = std::string(kLabel) + "=" + kLabelValue}, options_.ns)),
      responder_(responder),
      clock_(clock) {
  leases_.AddHandler([this](const client::Change<Lease>&) {
    MutexLock lock(mutex_);
    Wake();
  });
}

void Announcer::Wake() {
  changed_ = true;
  wake_.notify_all();
}

void Announcer::OnService(const std::string& key, const corev1::Service* service) {
  Offer offer;
  if (service && service->spec().type() == "LoadBalancer") {
    offer.uid = service->metadata().uid();
    offer.local = service->spec().external_traffic_policy() == "Local";
    for (const corev1::LoadBalancerIngress& ingress : service->status().load_balancer().ingress()) {
      auto ip = IpAddress::Parse(ingress.ip());
      if (ip && ingress.ip_mode() != "Proxy" && options_.addresses.Contains(*ip)) offer.addresses.insert(*ip);
    }
  }
  MutexLock lock(mutex_);
  if (offer.addresses.empty()) {
    if (offers_.erase(key) == 0) return;
  } else {
    Offer& stored = offers_[key];
    if (stored == offer) return;
    stored = std::move(offer);
  }
  Wake();
}

void Announcer::OnSlice(const std::string& key, const discoveryv1::EndpointSlice* slice) {
  std::string service;
  if (slice) {
    for (const discoveryv1::Endpoint& endpoint : slice->endpoints()) {
      const bool ready = !endpoint.conditions().has_ready() || endpoint.conditions().ready();
      if (!ready || endpoint.node_name() != options_.node_name) continue;
      auto name = slice->metadata().labels().find(kServiceName);
      if (name != slice->metadata().labels().end()) {
        service = api::KeyOf(slice->metadata().namespace_(), name->second);
      }
      break;
    }
  }
  MutexLock lock(mutex_);
  auto before = local_slices_.find(key);
  if ((before == local_slices_.end() ? "" : before->second) == service) return;
  if (before != local_slices_.end()) {
    if (--local_services_[before->second] == 0) local_services_.erase(before->second);
    local_slices_.erase(before);
  }
  if (!service.empty()) {
    local_slices_[key] = service;
    ++local_services_[service];
  }
  Wake();
}

void Announcer::OnNode(const corev1::Node* node) {
  if (node) responder_.SetNodeIps(FactsOf(*node).ips);
  const bool may = node && MayAnnounce(*node);
  MutexLock lock(mutex_);
  if (may == may_announce_) return;
  may_announce_ = may;
  Wake();
}

void Announcer::MarkSynced() {
  MutexLock lock(mutex_);
  synced_ = true;
  Wake();
}
void Announcer::MarkLeasesSynced() {
  MutexLock lock(mutex_);
  leases_synced_ = true;
  Wake();
}

std::map<std::string, Announcer::Group> Announcer::Groups() const {
  std::map<std::string, Group> out;
  for (const auto& [key, offer] : offers_) {
    Group& group = out[offer.local ? "load-balancer-" + offer.uid : SharedLease(key)];
    group.addresses.insert(offer.addresses.begin(), offer.addresses.end());
    group.eligible = may_announce_ && (!offer.local || local_services_.contains(key));
  }
  return out;
}

void Announcer::Observe(const std::string& name, Contest& contest) {
  const SteadyTime now = clock_.SteadyNow();
  const auto shown = leases_.Get(options_.ns, name);
  Candidacy& own = contest.candidacy;
  // What we have written comes back after a while.
  const bool lagging = own.record && now < contest.written + options_.times.renew;
  if (!shown) {
    if (lagging || (!own.record && own.seen != SteadyTime())) return;
    own.record.reset();
    own.seen = now;
    contest.lease.Clear();
    return;
  }
  auto version = [](const Lease& lease) {
    return std::strtoull(lease.metadata().resource_version().c_str(), nullptr, 10);
  };
  if (own.record && version(*shown) <= version(contest.lease)) return;
  contest.lease = *shown;
  if (own.record && MessageDifferencer::Equals(*own.record, shown->spec())) return;
  own.record = shown->spec();
  own.seen = now;
}

void Announcer::Store(const client::RestClient& api, const std::string& name, Contest& contest,
                      const coordinationv1::LeaseSpec& spec) {
  const SteadyTime sent = clock_.SteadyNow();
  Candidacy& own = contest.candidacy;
  Lease lease = contest.lease;
  lease.mutable_metadata()->set_name(name);
  lease.mutable_metadata()->set_namespace_(options_.ns);
  (*lease.mutable_metadata()->mutable_labels())[kLabel] = kLabelValue;
  *lease.mutable_spec() = spec;
  Result<Lease> stored = own.record ? api.Update(lease) : api.Create(lease);
  if (!stored) {
    own.failed = clock_.SteadyNow();
    const bool late = stored.error().Is(Code::kConflict) || stored.error().Is(Code::kAlreadyExists);
    log::Write(late ? log::Level::kDebug : log::Level::kWarn,
               "Cannot write a Lease of load balancer addresses", {{"lease", name}, {"err", stored.error()}});
    return;
  }
  contest.lease = *std::move(stored);
  contest.written = sent;
  own.record = contest.lease.spec();
  own.seen = sent;
  own.failed.reset();
  if (own.Holds()) {
    own.renewed = sent;
  } else {
    own.renewed.reset();
  }
}

// The Lease of a group that is gone: its holder removes it, or any node once the holder is silent.
SteadyTime Announcer::Forget(const client::RestClient& api, const std::string& name, Contest& contest) {
  Candidacy& own = contest.candidacy;
  const SteadyTime now = clock_.SteadyNow();
  const bool vacant = own.record->holder_identity().empty();
  SteadyTime due = own.Holds() ? now : own.seen + own.rank;
  if (!own.Holds() && !vacant) due += std::chrono::seconds(own.record->lease_duration_seconds());
  if (own.failed) due = std::max(due, *own.failed + options_.times.retry);
  if (now < due) return due;
  client::DeleteOptions as_seen;
  as_seen.resource_version = contest.lease.metadata().resource_version();
  Result<> deleted = api.Delete<Lease>(options_.ns, name, as_seen);
  own.failed = now;
  if (deleted || deleted.error().Is(Code::kNotFound)) own.record.reset();
  return now + options_.times.retry;
}

SteadyTime Announcer::Round(const client::RestClient& api, const std::map<std::string, Group>& groups) {
  for (const auto& [name, group] : groups) contests_[name];
  for (const auto& lease : leases_.List()) contests_[lease->metadata().name()];
  std::map<IpAddress, SteadyTime> speak;
  std::vector<std::string> release, forget;
  SteadyTime next = clock_.SteadyNow() + kLongest;
  for (auto it = contests_.begin(); it != contests_.end();) {
    auto& [name, contest] = *it;
    Candidacy& own = contest.candidacy;
    Observe(name, contest);
    auto group = groups.find(name);
    if (group == groups.end() && !own.record) {
      it = contests_.erase(it);
      continue;
    }
    ++it;
    own.identity = options_.node_name;
    own.rank = RankOf(options_.node_name, name, options_.times);
    own.eligible = group != groups.end() && group->second.eligible;
    if (group == groups.end()) {
      forget.push_back(name);
      continue;
    }
    Move move = NextMove(own, options_.times, clock_.SteadyNow());
    if (move.step == Move::kTake || move.step == Move::kRenew) {
      Store(api, name, contest, NextRecord(own, options_.times, clock_.Now()));
      move = NextMove(own, options_.times, clock_.SteadyNow());
    }
    if (move.step == Move::kRelease) release.push_back(name);
    next = std::min(next, move.again);
    if (!own.eligible || !own.Holds() || !own.renewed) continue;
    for (const IpAddress& ip : group->second.addresses) speak[ip] = *own.renewed + options_.times.lease;
  }
  responder_.Speak(std::move(speak));
  // Others may start only after this node is silent.
  for (const std::string& name : release) {
    Contest& contest = contests_[name];
    Store(api, name, contest, ReleasedRecord(*contest.candidacy.record, clock_.Now()));
    if (contest.candidacy.failed) next = std::min(next, *contest.candidacy.failed + options_.times.retry);
  }
  for (const std::string& name : forget) next = std::min(next, Forget(api, name, contests_[name]));
  return next;
}

void Announcer::GiveUp() {
  responder_.Speak({});
  for (auto& [name, contest] : contests_) {
    if (!contest.candidacy.Holds()) continue;
    Store(api_, name, contest, ReleasedRecord(*contest.candidacy.record, clock_.Now()));
    if (contest.candidacy.failed) return;  // the rest will fare no better: they run out
  }
}

Result<> Announcer::Run(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    Wake();
  });
  const client::RestClient api = api_.With(stop);
  SteadyTime again = clock_.SteadyNow();
  while (!stop.stop_requested()) {
    std::map<std::string, Group> groups;
    {
      MutexLock lock(mutex_);
      while (!stop.stop_requested() &&
             (!synced_ || !leases_synced_ || (!changed_ && clock_.SteadyNow() < again))) {
        clock_.WaitUntil(mutex_, wake_, synced_ && leases_synced_ ? again : clock_.SteadyNow() + kLongest);
      }
      if (stop.stop_requested()) break;
      changed_ = false;
      groups = Groups();
    }
    again = Round(api, groups);
  }
  GiveUp();
  return {};
}

}  // namespace keelson::proxy
