// The wanted contents of mode ebpf's maps, of one address family. Pure: no kernel, no clock. Not thread safe.
//
// Two Services may claim one address and port: the first keeps it, and the next one gets it when the first
// has gone.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxy/ebpf/contribution.h"
#include "proxy/nftables/claims.h"

namespace keelson::proxy::ebpf {

struct MapChanges {
  std::vector<std::pair<std::string, std::string>> put;
  std::vector<std::string> gone;
};
struct Changes {
  MapChanges maps[kMapCount];
  size_t size() const;
};

class Plan {
 public:
  explicit Plan(Options options);

  // Replaces what a Service (namespace/name) has. No ports: the Service has gone.
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports);
  // The addresses that NodePorts answer on.
  void SetNodeIps(const std::vector<IpAddress>& ips);

  // The changes since the last call, or since StartOver(). Costs as much as has changed.
  Changes TakeChanges();
  // Forgets the changes noted so far, for a caller that compares all maps by Difference(). No changes are
  // noted before the first call.
  void StartOver();
  // What turns a map that holds `found` into the wanted one.
  MapChanges Difference(MapId map, const std::vector<std::pair<std::string, std::string>>& found) const;
  // Entries that are wanted.
  size_t Size(MapId map) const { return claims_[map].size(); }
  const Options& options() const { return options_; }

 private:
  struct Owner {
    std::vector<std::pair<MapId, const std::string*>> keys;  // sorted; the strings are those of claims_
    EndpointSlotsByPort slots;
  };
  void Replace(Owner& owner, std::vector<MapEntry> now);
  void Drop(Owner& owner, MapId map, const std::string& key);
  void Touch(MapId map, const std::string& key);

  const Options options_;
  std::unordered_map<std::string, Owner> owners_;
  Owner node_, pods_;
  std::unordered_map<std::string, nftables::Claims> claims_[kMapCount];
  // As it was at the last TakeChanges, of what has been touched since.
  std::unordered_map<std::string, std::optional<std::string>> before_[kMapCount];
  bool noting_ = false;
};

}  // namespace keelson::proxy::ebpf
