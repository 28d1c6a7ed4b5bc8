// Sets and maps of kube-proxy's nftables tables. nftables_elements.h writes and reads their elements.
#pragma once

#include <cstdint>

#include "lib/nft/model.h"

namespace keelson::dataplane {

// Those that every table has; the elements' forms are in the words of nft(8).
enum SetId {
  kServices,           // services            addr . proto . port
  kEndpoints,          // endpoints           addr . proto . port . slot : endpoint addr . port
  kNodePorts,          // nodeports           proto . port
  kNodePortEndpoints,  // nodeport-endpoints  proto . port . slot : endpoint addr . port
  kNodePortIps,        // nodeport-ips        addr that NodePorts answer on
  kClusterIps,         // cluster-ips         addr; in mode ipvs of all Services
  kRejectServices,     // reject-services     as services: have no endpoint
  kDropServices,       // drop-services       as services: have none on this node, and policy Local
  kRejectNodePorts,    // reject-nodeports    as nodeports
  kDropNodePorts,      // drop-nodeports      as nodeports
  kHairpin,            // hairpin             endpoint addr . the same: a pod that reaches itself
  kLocalEndpoints,     // local-endpoints     endpoint addr on this node
  kLimited,            // limited             as services: have loadBalancerSourceRanges
  kSourceRanges,       // source-ranges       as services, and a range of client addrs
  kAffinity,           // affinity            client addr . addr . proto . port . slot, with a timeout
  kNodePortAffinity,   // nodeport-affinity   client addr . proto . port . slot, with a timeout
  kSetCount,
};

// The declaration. Lives as long as the program.
const nft::Set& SetOf(SetId id, bool v4);

// As KP_FIRST_LOCAL_SLOT of ebpf_maps.h: slots of endpoints on this node, in chains of policy Local.
inline constexpr uint32_t kFirstLocalSlot = 0x10000;

}  // namespace keelson::dataplane
