// A Service's part of the table: elements of sets, and the chains that pick its endpoints. Pure.
#pragma once

#include <string>
#include <vector>

#include "proxy/model/service_port.h"
#include "proxy/nftables/chains.h"
#include "proxy/nftables/endpoint_slots.h"

namespace keelson::proxy::nftables {

// The rest of an element: a map's datum, a range's last key, or (kServices, kNodePorts) the name of the pick
// chain, whose set gets the key as well.
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

// `slots`: in, the slots of the last call; out, those of this one. `node_ips`: source ranges that contain one admit
// the node. `ipvs` as in Options.
Contribution ContributionOf(const std::vector<ResolvedPort>& ports, const std::vector<IpAddress>& node_ips,
                            bool ipvs, EndpointSlotsByPort& slots);

}  // namespace keelson::proxy::nftables
