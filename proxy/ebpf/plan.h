// What should be in the maps of mode ebpf, of one address family. Pure: no kernel, no clock.
//
// TakeChanges gives what has changed since the last call and costs as much. Two Services may claim one
// address and port: the first keeps it, and the next one gets it when the first has gone.
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

  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports);  // no ports: gone
  void SetNodeIps(const std::vector<IpAddress>& ips);                               // where NodePorts answer

  Changes TakeChanges();
  // For who brings the kernel up by comparison: changes are noted from there on, and not before the first
  // time.
  void StartOver();
  // What makes `found` what is wanted.
  MapChanges Difference(MapId map, const std::vector<std::pair<std::string, std::string>>& found) const;
  size_t Size(MapId map) const { return claims_[map].size(); }
  const Options& options() const { return options_; }

 private:
  struct Owner {
    std::vector<std::pair<MapId, const std::string*>> keys;  // sorted; the strings are those of claims_
    SlotsByPort slots;
  };
  void Replace(Owner& owner, std::vector<Entry> now);
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
