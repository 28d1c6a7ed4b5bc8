// What one Service puts into the table: elements and ways of picking. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proxy/model/service_port.h"
#include "proxy/nftables/chains.h"

namespace keelson::proxy::nftables {

// What there is to an element beside its key: a map's datum, a range's last key, or (kServices, kNodePorts)
// the name of the pick chain, which says to which of the sets the key goes.
using Datum = std::string;

struct Item {
  SetId set;
  std::string key;
  Datum datum;
};

struct Contribution {
  std::vector<Item> items;
  std::vector<PickSpec> picks;
};

// Of one Service port.
struct Slots {
  std::vector<Backend> cluster, local;  // port 0: a hole
};
using SlotsByPort = std::map<std::string, Slots>;

// `slots` are those of last time, and then of this time. `node_ips` tells source ranges that mean this node.
// `ipvs` as in Options.
Contribution ContributionOf(const std::vector<ResolvedPort>& ports, const std::vector<IpAddress>& node_ips,
                            bool ipvs, SlotsByPort& slots);

}  // namespace keelson::proxy::nftables
