// The bridge table: frames of pods go to the node, whatever MAC address they are for. Pure.
//
//   table bridge keelson-policy {
//     chain prerouting { type filter hook prerouting priority -300;
//       iifname not in @ports : return                  not a pod's port
//       ARP, and IPv6 neighbour discovery and multicast listeners : accept
//       iifname in @checked-ports, iifname . saddr not in @sources4 or @sources6 : drop
//       IPv4, IPv6 : the frame is for the bridge itself, accept
//       drop
//     }
//   }
//
// The node then forwards packets between pods of one bridge like any others, through the hooks of family inet.
// So rules see them without br_netfilter and without connection tracking in bridges. Multicast and broadcast
// packets of pods reach the node only.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "lib/nft/model.h"

namespace keelson::cni::policy {

// `bridge`: MAC address of the bridge; nullopt: there is none yet, and frames of pods are dropped. `links`: the
// names of the bridge's ports. `found`: the table as it is; elements of ports that exist stay, and ports
// without an element get one, which checks no sources.
nft::Ruleset PortRules(const std::optional<std::string>& bridge, const std::set<std::string>& links,
                       const std::optional<nft::Ruleset>& found);

}  // namespace keelson::cni::policy
