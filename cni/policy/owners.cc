#include "cni/policy/owners.h"

#include <algorithm>
#include <tuple>

namespace keelson::cni::policy {
namespace {

bool KeyBefore(const Pod& a, const Pod& b) { return a.ns + "/" + a.name < b.ns + "/" + b.name; }

// The order in which Members prefers pods that report one address.
bool Preferred(const Pod& a, const Pod& b) {
  if (Younger(a, b)) return true;
  return !Younger(b, a) && KeyBefore(a, b);
}

template <typename Map, typename Key, typename Value>
void EraseOne(Map& map, const Key& key, const Value& value) {
  auto [at, end] = map.equal_range(key);
  for (; at != end; ++at) {
    if (at->second != value) continue;
    map.erase(at);
    return;
  }
}

}  // namespace

bool Owners::IsLocal(const Pod& pod) const { return pod.node == node_ && HasAddresses(pod); }

void Owners::Add(const Pod& pod) {
  if (!HasAddresses(pod)) return;
  for (const IpAddress& address : pod.addresses) claims_.emplace(address, &pod);
  if (!IsLocal(pod)) return;
  by_uid_.emplace(pod.uid, &pod);
  if (!pod.static_uid.empty()) by_static_uid_.emplace(pod.static_uid, &pod);
  if (!pod.terminating && !pod.addresses.empty()) reporting_.insert(&pod);
}

void Owners::Remove(const Pod& pod) {
  if (!HasAddresses(pod)) return;
  for (const IpAddress& address : pod.addresses) EraseOne(claims_, address, &pod);
  if (!IsLocal(pod)) return;
  EraseOne(by_uid_, pod.uid, &pod);
  if (!pod.static_uid.empty()) EraseOne(by_static_uid_, pod.static_uid, &pod);
  reporting_.erase(&pod);
}

void Owners::Attach(const IpAddress& address, std::optional<Attachment> attachment) {
  auto there = attachments_.find(address);
  if (there != attachments_.end()) {
    EraseOne(attached_by_uid_, there->second.uid, address);
    attachments_.erase(there);
  }
  if (!attachment) return;
  attached_by_uid_.emplace(attachment->uid, address);
  attachments_.emplace(address, std::move(*attachment));
}

const Pod* Owners::Attached(const std::string& uid) const {
  const Pod* out = nullptr;
  auto [at, end] = by_uid_.equal_range(uid);
  for (; at != end; ++at) {
    if (!out || KeyBefore(*out, *at->second)) out = at->second;
  }
  if (out) return out;
  std::tie(at, end) = by_static_uid_.equal_range(uid);
  for (; at != end; ++at) {
    if (!out || KeyBefore(*at->second, *out)) out = at->second;
  }
  return out;
}

const Pod* Owners::OwnerOf(const IpAddress& address) const {
  auto attached = attachments_.find(address);
  if (attached != attachments_.end()) return Attached(attached->second.uid);
  const Pod* out = nullptr;
  auto [at, end] = claims_.equal_range(address);
  for (; at != end; ++at) {
    if (!out || Preferred(*at->second, *out)) out = at->second;
  }
  return out;
}

std::vector<IpAddress> Owners::AddressesOf(const Pod& pod) const {
  std::vector<IpAddress> out = pod.addresses;
  if (pod.node == node_) {
    for (const std::string* uid : {&pod.uid, &pod.static_uid}) {
      auto [at, end] = attached_by_uid_.equal_range(*uid);
      for (; at != end; ++at) out.push_back(at->second);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::map<IpAddress, std::string> Owners::Unattached(const std::vector<IpPrefix>& pod_cidrs) const {
  std::map<IpAddress, const Pod*> found;
  for (const Pod* pod : reporting_) {
    if (attached_by_uid_.contains(pod->uid) || attached_by_uid_.contains(pod->static_uid)) continue;
    for (const IpAddress& address : pod->addresses) {
      bool here = std::any_of(pod_cidrs.begin(), pod_cidrs.end(),
                              [&](const IpPrefix& cidr) { return cidr.Contains(address); });
      if (!here || attachments_.contains(address)) continue;
      auto [owner, is_new] = found.try_emplace(address, pod);
      if (!is_new && Preferred(*pod, *owner->second)) owner->second = pod;
    }
  }
  std::map<IpAddress, std::string> out;
  for (const auto& [address, pod] : found) out[address] = pod->uid;
  return out;
}

}  // namespace keelson::cni::policy
