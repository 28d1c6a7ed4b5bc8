// Follows a connection's beginning through this node: the socket, or the device that it comes in by, where
// eBPF serves there, and then the first packet: hooks, routing, hooks, until it is delivered, leaves the
// node, or is refused.
#pragma once

#include <string>
#include <vector>

#include "ctl/ebpf/socket_call.h"
#include "ctl/trace/node_view.h"
#include "ctl/trace/service_view.h"

namespace keelson::ctl {

struct Source {
  enum Kind { kPod, kHost, kAddress } kind = kHost;
  std::string name;  // "pod default/client", "host", "address 192.0.2.1"
  // kHost: empty, the node chooses for each destination.
  std::vector<IpAddress> ips;
  std::string link = {};  // of kAddress: what its packets come in by; empty: what answers leave by

  // Of the destination's family; nullptr: none.
  const IpAddress* IpFor(const IpAddress& destination) const;
};

struct Backend {
  IpAddress ip;
  uint16_t port = 0;
  bool masqueraded = false;  // sees this node as its client
  bool refused = false;      // by a rule behind the choice of it
  std::string via;           // "dev eth0 via 192.0.2.2", "this node"; "no route: ..."
  bool reachable = true;
  std::vector<nft::TraceStep> steps;  // from the choice on
};

struct Path {
  enum Verdict {
    kDelivered,      // to one of the backends
    kLocal,          // to a socket of this node, under the address it was sent to
    kNotTranslated,  // leaves as it came: nothing here knows the address
    kDropped,
    kRejected,
    kNoWay,  // the source has no address of this family, or no route
  };
  Frontend frontend;
  std::optional<Call> call;  // by which the socket was asked, where eBPF serves it
  Verdict verdict = kNotTranslated;
  std::vector<nft::TraceStep> steps;  // that all ways share
  std::vector<Backend> backends;      // sorted, each once
  bool misses = false;                // some packets go to none of them
  std::string answers_lost;           // the device that answers leave by as the endpoints'; empty: none does
  std::vector<std::string> not_understood;
};
std::string_view VerdictName(Path::Verdict verdict);  // "Delivered"

// `call` matters to sockets of UDP on this node.
Path FollowPacket(NodeView& node, const Source& source, const Frontend& frontend, uint8_t protocol,
                  Call call = Call::kConnect);

}  // namespace keelson::ctl
