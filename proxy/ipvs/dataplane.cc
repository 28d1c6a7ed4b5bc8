#include "proxy/ipvs/dataplane.h"

#include <algorithm>
#include <utility>

#include "lib/base/log.h"

namespace keelson::proxy::ipvs {
namespace {

using netlink::Destination;
using netlink::FoundDestination;

nftables::Options ForIpvs(nftables::Options rules) {
  rules.ipvs = true;
  return rules;
}

void Merge(SyncStats& into, SyncStats more) {
  into.operations += more.operations;
  into.full = into.full || more.full;
  for (Refusal& refusal : more.refusals) into.refusals.push_back(std::move(refusal));
}

}  // namespace

Dataplane::Dataplane(std::unique_ptr<Kernel> kernel, std::unique_ptr<nft::Kernel> nft, Options options,
                     nftables::Options rules)
    : kernel_(std::move(kernel)),
      options_(std::move(options)),
      rules_(std::move(nft), ForIpvs(std::move(rules))),
      plan_(rules_.v4()) {}

void Dataplane::SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
  rules_.SetService(key, ports);
  plan_.SetService(key, ports);
}

void Dataplane::SetNodeIps(const std::vector<IpAddress>& ips) {
  rules_.SetNodeIps(ips);
  plan_.SetNodeIps(ips);
}

void Dataplane::OnPeriod() {
  rules_.OnPeriod();
  look_ = true;
  pending_.merge(refused_);
  refused_.clear();
}

void Dataplane::Guard(const IpAddress& ip, bool on) {
  rules_.plan().Guard(ip, on);
  guards_changed_ = true;
}

void Dataplane::NotePlan() {
  pending_.merge(plan_.TakeServers());
  for (const ServerAddress& address : pending_) refused_.erase(address);
  for (const IpAddress& ip : plan_.TakeAddresses()) {
    pending_ips_.insert(ip);
    if (Wants(ip)) Guard(ip, true);
  }
}

Result<> Dataplane::SyncRules(SyncStats& stats) {
  KEELSON_ASSIGN_OR_RETURN(SyncStats more, rules_.Sync());
  guards_changed_ = false;
  Merge(stats, std::move(more));
  return {};
}

Result<SyncStats> Dataplane::Sync() {
  KEELSON_ASSIGN_OR_RETURN(SyncStats stats, Write());
  if (!std::exchange(look_, false) || stats.full) return stats;
  KEELSON_ASSIGN_OR_RETURN(bool in_step, IsInStep());
  if (in_step) return stats;
  log::Warn("Somebody else has changed virtual servers or their addresses; all are looked at",
            {{"family", v4() ? "IPv4" : "IPv6"}});
  in_step_ = false;
  KEELSON_ASSIGN_OR_RETURN(SyncStats more, Write());
  const auto again = more.again;
  Merge(stats, std::move(more));
  stats.again = again;
  return stats;
}

Result<SyncStats> Dataplane::Write() {
  SyncStats stats{.full = !in_step_};
  if (!in_step_) KEELSON_RETURN_IF_ERROR(Look());
  NotePlan();
  pending_.insert(draining_.begin(), draining_.end());
  KEELSON_RETURN_IF_ERROR(SyncRules(stats));
  KEELSON_RETURN_IF_ERROR(WriteServers(stats));
  KEELSON_RETURN_IF_ERROR(WriteAddresses(stats));
  if (guards_changed_) KEELSON_RETURN_IF_ERROR(SyncRules(stats));
  if (!draining_.empty()) stats.again = options_.drain_interval;
  return stats;
}

Result<SyncStats> Dataplane::Verify() {
  in_step_ = false;
  Result<SyncStats> rules = rules_.Verify();
  if (!rules) return rules;
  KEELSON_ASSIGN_OR_RETURN(SyncStats stats, Sync());
  Merge(stats, *std::move(rules));
  return stats;
}

Result<> Dataplane::WriteServers(SyncStats& stats) {
  while (!pending_.empty()) {
    const ServerAddress address = *pending_.begin();
    Result<> written = WriteServer(address, stats.operations);
    if (!written) {
      if (written.error().Is(Code::kUnimplemented) || written.error().Is(Code::kForbidden)) {
        in_step_ = false;
        return written;  // it is not the Service
      }
      stats.refusals.push_back({plan_.OwnerOf(address), written.error()});
      refused_.insert(address);
    }
    pending_.erase(address);
  }
  return {};
}

Result<> Dataplane::WriteServer(const ServerAddress& address, size_t& operations) {
  const Server* wanted = retiring_ ? nullptr : plan_.Find(address);
  auto present = present_.find(address);
  const bool fresh = present == present_.end();
  if (!wanted && fresh) return {};
  if (wanted && (fresh || present->second != wanted->affinity)) {
    const netlink::VirtualServer server{.address = address,
                                        .scheduler = options_.scheduler,
                                        .scheduler_flags = options_.scheduler_flags,
                                        .affinity = wanted->affinity};
    Result<> written = fresh ? kernel_->AddServer(server) : kernel_->ChangeServer(server);
    if (!written && written.error().Is(Code::kAlreadyExists)) written = kernel_->ChangeServer(server);
    KEELSON_RETURN_IF_ERROR(written);
    ++operations;
    present_[address] = wanted->affinity;
  }
  bool left = false;
  KEELSON_RETURN_IF_ERROR(WriteDestinations(address, wanted, fresh, operations, left));
  left ? (void)draining_.insert(address) : (void)draining_.erase(address);
  if (wanted || left) return {};
  KEELSON_RETURN_IF_ERROR(kernel_->DeleteServer(address));
  ++operations;
  present_.erase(address);
  pending_ips_.insert(address.ip);
  if (retiring_ && address.protocol == kUdp) gone_.insert(address);
  return {};
}

// `left`: some are there only until their connections end.
Result<> Dataplane::WriteDestinations(const ServerAddress& address, const Server* wanted, bool fresh,
                                      size_t& operations, bool& left) {
  std::vector<FoundDestination> found;
  if (!fresh) {
    KEELSON_ASSIGN_OR_RETURN(found, kernel_->Destinations(address));
  }
  static const std::vector<Target> kNone;
  const std::vector<Target>& targets = wanted ? wanted->targets : kNone;
  std::set<Target> there;
  for (const FoundDestination& one : found) {
    Destination destination = one.destination;
    const Target target{destination.ip, destination.port};
    there.insert(target);
    if (std::binary_search(targets.begin(), targets.end(), target)) {
      if (destination.weight == 1 && one.translates) continue;
      destination.weight = 1;
      KEELSON_RETURN_IF_ERROR(kernel_->ChangeDestination(address, destination));
    } else if (address.protocol != kTcp ||
               ((retiring_ || destination.weight == 0) && one.active + one.inactive == 0)) {
      KEELSON_RETURN_IF_ERROR(kernel_->DeleteDestination(address, destination.ip, destination.port));
    } else {
      // One that is found without connections may get one at this very moment, as long as others do not take
      // them: it goes the next time.
      left = true;
      if (destination.weight == 0) continue;
      destination.weight = 0;
      KEELSON_RETURN_IF_ERROR(kernel_->ChangeDestination(address, destination));
    }
    ++operations;
  }
  for (const Target& target : targets) {
    if (there.contains(target)) continue;
    Result<> added = kernel_->AddDestination(address, {.ip = target.ip, .port = target.port});
    if (!added && !added.error().Is(Code::kAlreadyExists)) return added;
    ++operations;
  }
  return {};
}

bool Dataplane::HasServer(const IpAddress& ip) const {
  for (Protocol protocol : {kTcp, kUdp, kSctp}) {
    auto first = present_.lower_bound({protocol, ip, 0});
    if (first != present_.end() && first->first.protocol == protocol && first->first.ip == ip) return true;
  }
  return false;
}

Result<> Dataplane::WriteAddresses(SyncStats& stats) {
  while (!pending_ips_.empty()) {
    const IpAddress ip = *pending_ips_.begin();
    const bool bound = bound_.contains(ip);
    Result<> done;
    if (Wants(ip) && !bound) {
      done = kernel_->Bind(ip);
      if (done) bound_.insert(ip);
      ++stats.operations;
    } else if (!Wants(ip) && bound && !InUse(ip)) {
      done = kernel_->Unbind(ip);
      if (done) bound_.erase(ip);
      ++stats.operations;
    }
    if (!done) {
      in_step_ = false;
      return done;
    }
    if (!Wants(ip) && !bound_.contains(ip)) Guard(ip, false);
    pending_ips_.erase(ip);
  }
  return {};
}

Result<std::optional<std::chrono::milliseconds>> Dataplane::Retire() {
  if (!std::exchange(retiring_, true)) {
    // New connections are the other dataplane's; what remains is to keep them off this node's own ports.
    rules_.plan().ForgetServices();
    rules_.SetNodeIps({});
    rules_.SetServiceCidrs({});
    in_step_ = false;
  }
  // This node's own connections to an address that is still its own come from there, whoever translates them.
  KEELSON_ASSIGN_OR_RETURN(sources_, kernel_->ConnectedFrom());
  pending_ips_.insert(bound_.begin(), bound_.end());
  KEELSON_ASSIGN_OR_RETURN(SyncStats stats, Sync());
  if (!gone_.empty()) KEELSON_RETURN_IF_ERROR(kernel_->ForgetFlows(v4(), gone_));
  gone_.clear();
  if (!stats.refusals.empty()) return stats.refusals[0].error;
  if (!present_.empty() || !bound_.empty()) return std::optional(options_.drain_interval);
  // The device serves both families; who leaves last takes it away.
  KEELSON_ASSIGN_OR_RETURN(std::set<IpAddress> others, kernel_->Bound());
  if (others.empty()) KEELSON_RETURN_IF_ERROR(kernel_->RemoveDevice());
  return rules_.Retire();
}

}  // namespace keelson::proxy::ipvs
