#include "cni/policy/members.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace keelson::cni::policy {
namespace {

// This node's pods, by the UID that the runtime knows them by.
std::unordered_map<std::string_view, const Pod*> ByUid(const Cluster& cluster, std::string_view node) {
  std::unordered_map<std::string_view, const Pod*> out;
  for (const auto& [key, pod] : cluster.pods) {
    if (pod.node == node && HasAddresses(pod)) out[pod.uid] = &pod;
  }
  for (const auto& [key, pod] : cluster.pods) {
    bool mirror = pod.node == node && HasAddresses(pod) && !pod.static_uid.empty();
    if (mirror) out.try_emplace(pod.static_uid, &pod);
  }
  return out;
}

}  // namespace

bool Younger(const Pod& a, const Pod& b) { return std::tie(a.created, a.uid) > std::tie(b.created, b.uid); }

Members::Members(const Cluster& cluster, std::string_view node, const Attachments& attachments) {
  auto by_uid = ByUid(cluster, node);
  std::unordered_map<IpAddress, const Pod*> owners;
  for (const auto& [key, pod] : cluster.pods) {
    if (!HasAddresses(pod)) continue;
    for (const IpAddress& address : pod.addresses) {
      auto [owner, is_new] = owners.try_emplace(address, &pod);
      if (!is_new && Younger(pod, *owner->second)) owner->second = &pod;
    }
  }
  for (const auto& [address, attachment] : attachments) {
    auto found = by_uid.find(attachment.uid);
    if (found == by_uid.end()) {
      owners.erase(address);
    } else {
      owners[address] = found->second;
      attached_[address] = found->second;
    }
  }
  std::unordered_map<const Pod*, std::vector<IpAddress>> addresses;
  for (const auto& [address, pod] : owners) addresses[pod].push_back(address);
  for (const auto& [key, pod] : cluster.pods) {
    auto found = addresses.find(&pod);
    if (found == addresses.end()) continue;
    std::sort(found->second.begin(), found->second.end());
    by_namespace_[pod.ns].push_back({&pod, std::move(found->second)});
  }
}

const std::vector<Members::Member>& Members::Of(std::string_view ns) const {
  static const std::vector<Member> none;
  auto found = by_namespace_.find(ns);
  return found == by_namespace_.end() ? none : found->second;
}

std::map<IpAddress, std::string> Unattached(const Cluster& cluster, std::string_view node,
                                            const std::vector<IpPrefix>& pod_cidrs,
                                            const Attachments& attachments) {
  std::set<std::string_view> attached;
  for (const auto& [address, attachment] : attachments) attached.insert(attachment.uid);
  std::map<IpAddress, const Pod*> found;
  for (const auto& [key, pod] : cluster.pods) {
    // A pod with an attachment reports addresses of its former sandbox for a while.
    bool known = attached.contains(pod.uid) || attached.contains(pod.static_uid);
    if (pod.node != node || !HasAddresses(pod) || pod.terminating || known) continue;
    for (const IpAddress& address : pod.addresses) {
      bool here = std::any_of(pod_cidrs.begin(), pod_cidrs.end(),
                              [&](const IpPrefix& cidr) { return cidr.Contains(address); });
      if (!here || attachments.contains(address)) continue;
      auto [owner, is_new] = found.try_emplace(address, &pod);
      if (!is_new && Younger(pod, *owner->second)) owner->second = &pod;
    }
  }
  std::map<IpAddress, std::string> out;
  for (const auto& [address, pod] : found) out[address] = pod->uid;
  return out;
}

}  // namespace keelson::cni::policy
