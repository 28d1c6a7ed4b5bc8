#include "proxy/ebpf/plan.h"

#include <algorithm>
#include <tuple>

namespace keelson::proxy::ebpf {

size_t Changes::size() const {
  size_t out = 0;
  for (const MapChanges& map : maps) out += map.put.size() + map.gone.size();
  return out;
}

Plan::Plan(Options options) : options_(std::move(options)) { Replace(pods_, PodEntries(options_.pod_cidrs)); }

void Plan::SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
  if (ports.empty()) {
    auto found = owners_.find(key);
    if (found == owners_.end()) return;
    Replace(found->second, {});
    owners_.erase(found);
    return;
  }
  Owner& owner = owners_[key];
  Replace(owner, ContributionOf(ports, options_, owner.slots));
}

void Plan::SetNodeIps(const std::vector<IpAddress>& ips) {
  Replace(node_, NodePortEntries(ips, options_.v4));
}

void Plan::StartOver() {
  noting_ = true;
  for (auto& before : before_) before = {};
}

void Plan::Touch(MapId map, const std::string& key) {
  if (!noting_) return;
  auto [at, added] = before_[map].try_emplace(key);
  if (!added) return;
  auto found = claims_[map].find(key);
  if (found != claims_[map].end() && !found->second.empty()) at->second = found->second.Held();
}

void Plan::Drop(Owner& owner, MapId map, const std::string& key) {
  Touch(map, key);
  auto found = claims_[map].find(key);
  found->second.Remove(&owner);
  if (found->second.empty()) claims_[map].erase(found);
}

void Plan::Replace(Owner& owner, std::vector<MapEntry> now) {
  // One owner claims a key once, however many of its ports ask for it.
  std::stable_sort(now.begin(), now.end(), [](const MapEntry& a, const MapEntry& b) {
    return std::tie(a.map, a.key) < std::tie(b.map, b.key);
  });
  now.erase(
      std::unique(now.begin(), now.end(),
                  [](const MapEntry& a, const MapEntry& b) { return a.map == b.map && a.key == b.key; }),
      now.end());
  auto old = owner.keys.begin();
  std::vector<std::pair<MapId, const std::string*>> keys;
  keys.reserve(now.size());
  for (MapEntry& entry : now) {
    while (old != owner.keys.end() && std::tie(old->first, *old->second) < std::tie(entry.map, entry.key)) {
      Drop(owner, old->first, *old->second);
      ++old;
    }
    if (old != owner.keys.end() && old->first == entry.map && *old->second == entry.key) ++old;
    auto& [key, claims] = *claims_[entry.map].try_emplace(std::move(entry.key)).first;
    std::string* mine = claims.Of(&owner);
    if (!mine || *mine != entry.value) {
      Touch(entry.map, key);
      if (mine) {
        *mine = std::move(entry.value);
      } else {
        claims.Add(&owner, std::move(entry.value));
      }
    }
    keys.emplace_back(entry.map, &key);
  }
  for (; old != owner.keys.end(); ++old) Drop(owner, old->first, *old->second);
  owner.keys = std::move(keys);
}

Changes Plan::TakeChanges() {
  Changes out;
  for (int map = 0; map < kMapCount; ++map) {
    for (const auto& [key, before] : before_[map]) {
      auto found = claims_[map].find(key);
      const std::string* now = found == claims_[map].end() ? nullptr : &found->second.Held();
      if (before && !now) out.maps[map].gone.push_back(key);
      if (now && before != *now) out.maps[map].put.emplace_back(key, *now);
    }
    before_[map] = {};  // clear() would cost as much as there ever was in it
  }
  return out;
}

MapChanges Plan::Difference(MapId map, const std::vector<std::pair<std::string, std::string>>& found) const {
  std::unordered_map<std::string_view, std::string_view> there;
  there.reserve(found.size());
  MapChanges out;
  for (const auto& [key, value] : found) {
    there.emplace(key, value);
    if (!claims_[map].contains(key)) out.gone.push_back(key);
  }
  for (const auto& [key, claims] : claims_[map]) {
    auto same = there.find(key);
    if (same == there.end() || same->second != claims.Held()) out.put.emplace_back(key, claims.Held());
  }
  return out;
}

}  // namespace keelson::proxy::ebpf
