// What the policies that select a pod permit, as clauses: a packet is permitted if one of them matches.
//
// Clauses name sets by their contents' description, so pods to which the same applies share clauses, and a
// restarted agent finds the sets that it made before.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/policy/blocks.h"
#include "cni/policy/members.h"
#include "cni/policy/objects.h"
#include "lib/nft/model.h"

namespace keelson::cni::policy {

enum class Direction { kIngress, kEgress };

struct Clause {
  // Of the other side. Empty: any address.
  std::string peers = {};
  // Of the packet's destination. Empty: any port of any protocol.
  std::string ports = {};
  // What `peers` holds.
  enum class Form {
    kAddresses,       // address
    kBlocks,          // ranges of address . protocol
    kBlocksAndPorts,  // ranges of address . protocol . port; `ports` is empty
    kNamedPorts,      // address . protocol . port of pods; `ports` is empty
  } form = Form::kAddresses;
  auto operator<=>(const Clause&) const = default;
};

using Sets = std::map<std::string, nft::Ruleset::SetContents>;

// Builds clauses of one family; collects the sets that they name in `sets`.
class ClauseBuilder {
 public:
  ClauseBuilder(const Cluster& cluster, const Members& members, bool v4, Sets& sets);

  // The clauses for `pod`, sorted and without repetitions; nullopt if no policy isolates it in that direction.
  std::optional<std::vector<Clause>> Of(const Pod& pod, Direction direction);

 private:
  void AddRule(const Policy& policy, const Rule& rule, const Pod& pod, Direction direction,
               std::vector<Clause>& out);
  std::string PortsSet(const std::vector<PortRange>& ranges);
  std::string PeersSet(const Policy& policy, const Peer& peer);
  std::string NamedSet(const Policy& policy, const Peer& peer, const std::vector<Port>& ports);
  std::optional<Clause> Blocks(const Rule& rule, const std::vector<PortRange>& ranges);
  nft::Ruleset::SetContents* NewSet(const std::string& name, std::vector<nft::Type> key, bool interval);

  const Cluster& cluster_;
  const Members& members_;
  const bool v4_;
  Sets& sets_;
};

}  // namespace keelson::cni::policy
