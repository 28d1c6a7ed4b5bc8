// Simulates load balancing at sockets in mode ebpf: decides about connect() and sendmsg() as the programs in the
// kernel do (proxy/ebpf/bpf/socket_lb.h), from the maps that they read. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/ebpf/ebpf_maps.h"
#include "ctl/problem.h"

namespace keelson::ctl {

enum class SocketCall {
  kConnect,
  kSend,  // sendmsg() of a UDP socket that is not connected
};
// The program that decides about sockets of that family: "connect4", "sendmsg6".
std::string ProgramName(SocketCall call, bool v4);

struct SocketLbOutcome {
  dataplane::SocketVerdict verdict = dataplane::kSocketPass;
  std::vector<dataplane::EndpointAddress> endpoints;  // of kSocketServe: the socket gets any one of them
  bool misses = false;                                // some slot is empty
  std::string why;                                    // "10.96.0.1:80/TCP has 2 endpoints"
};

// Decides about a call to `ip`, `protocol` and `port` by a process of the node, or of a pod. A pod's session
// affinity is not known: the outcome has all endpoints then.
SocketLbOutcome RunSocketLb(const EbpfMaps& maps, bool from_node, SocketCall call, const IpAddress& ip,
                            uint8_t protocol, uint16_t port);

// What is wrong with the programs and maps of all families. `rules`: the nftables table of mode ebpf is in the
// kernel. `node_netns`: cookie of the node's network namespace; 0: not known.
std::vector<Problem> SocketLbFaults(const std::vector<EbpfMaps>& families, bool rules,
                                    const std::string& pin_directory, uint64_t node_netns);

}  // namespace keelson::ctl
