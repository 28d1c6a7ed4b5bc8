// What becomes of the first packet of a connection from outside at the device that it comes in by, where mode
// ebpf serves there: as the filter in the kernel decides it (proxy/ebpf/bpf/outside.h), told from the maps
// that it reads. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/ebpf/socket_maps.h"
#include "ctl/problem.h"
#include "lib/netlink/conntrack.h"

namespace keelson::ctl {

struct OutsidePacket {
  std::string link;  // by which it comes in
  IpAddress client, to;
  uint8_t protocol = 6;
  uint16_t port = 0;
};

struct OutsideChoice {
  Target target;
  int percent = 0;  // of the connections
};

struct OutsideOutcome {
  bool served = false;                 // otherwise the packet goes on as it came
  std::vector<OutsideChoice> choices;  // any one of them
  bool masquerade = false;             // marked so, for the rules
  bool misses = false;                 // the table leads to a slot without an endpoint
  std::string why;
};

OutsideOutcome MeetFilter(const SocketMaps& maps, const OutsidePacket& packet);

// Whether what is chosen leaves by `out` at once, past the rules: from which address.
std::optional<IpAddress> SentOnFrom(const OutsideMaps& maps, const std::string& in, const std::string& out);

// Connections that are remembered and have not ended, as connection tracking would have them: the replier is
// the endpoint.
std::vector<netlink::Flow> RememberedFlows(const SocketMaps& maps, uint8_t protocol);

// Why who comes from outside is not served as it should be.
std::vector<Problem> OutsideFaults(const std::vector<SocketMaps>& families);

}  // namespace keelson::ctl
