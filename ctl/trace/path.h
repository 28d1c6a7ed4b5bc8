// Follows the first packet of a connection through this node: where kube-proxy's mode is ebpf, the socket or the
// device that the packet comes in by; then hooks, routing and hooks, until the packet is delivered, leaves the
// node or is refused.
#pragma once

#include <string>
#include <vector>

#include "ctl/ebpf/socket_lb.h"
#include "ctl/trace/node_view.h"
#include "ctl/trace/service_view.h"

namespace keelson::ctl {

struct Source {
  enum Kind { kPod, kHost, kAddress } kind = kHost;
  std::string name;  // "pod default/client", "host", "address 192.0.2.1"
  // kHost: empty, the node chooses for each destination.
  std::vector<IpAddress> ips;
  std::string link = {};  // kAddress: the device that packets come in by; empty: that of the route back

  // The address of the destination's family; null: none.
  const IpAddress* IpFor(const IpAddress& destination) const;
};

struct Backend {
  IpAddress ip;
  uint16_t port = 0;
  bool masqueraded = false;  // the backend sees this node as its client
  bool refused = false;      // a rule after its selection drops or rejects
  std::string via;           // "dev eth0 via 192.0.2.2", "this node"; "no route: ..."
  bool reachable = true;
  std::vector<nft::TraceStep> steps;  // from its selection on
};

struct Path {
  enum Verdict {
    kDelivered,      // to one of the backends
    kLocal,          // to a socket of this node, at the packet's original destination
    kNotTranslated,  // no rule or map here knows the address
    kDropped,
    kRejected,
    kNoWay,  // the source has no address of this family, or no route
  };
  Frontend frontend;
  std::optional<SocketCall> call;  // where eBPF serves sockets
  Verdict verdict = kNotTranslated;
  std::vector<nft::TraceStep> steps;  // before a backend is selected
  std::vector<Backend> backends;      // sorted, each once
  bool misses = false;                // some packets get no backend
  std::string answers_lost;           // the device where answers leave untranslated; empty: none
  std::vector<std::string> not_understood;
};
std::string_view VerdictName(Path::Verdict verdict);  // "Delivered"

// `call` matters to UDP sockets on this node. `protocol`: IPPROTO_*.
Path FollowPacket(NodeView& node, const Source& source, const Frontend& frontend, uint8_t protocol,
                  SocketCall call = SocketCall::kConnect);

}  // namespace keelson::ctl
