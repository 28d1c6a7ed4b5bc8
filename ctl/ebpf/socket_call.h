// What becomes of connect() or sendmsg() to a Service where sockets are served by eBPF: as the programs in
// the kernel decide it (proxy/ebpf/bpf/socket_lb.bpf.c), told from the maps that they read. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/ebpf/socket_maps.h"
#include "ctl/problem.h"

namespace keelson::ctl {

enum class Call {
  kConnect,
  kSend,  // of a socket of UDP that is not connected
};
// "connect4", "sendmsg6": the program that decides.
std::string ProgramName(Call call, bool v4);

struct SocketOutcome {
  Answer answer = Answer::kPass;  // kPass: packets go to the address that was asked for
  std::vector<Target> targets;    // of kServe: any one of them
  bool misses = false;            // some slot is empty
  std::string why;                // "10.96.0.1:80/TCP has 2 endpoints"
};

// What is asked at `ip`, by the node or by a pod. A pod's affinity is not known: any endpoint then.
SocketOutcome CallSocket(const SocketMaps& maps, bool from_node, Call call, const IpAddress& ip,
                         uint8_t protocol, uint16_t port);

// Why sockets are not served as they should be. `rules`: those of mode ebpf are in the kernel.
std::vector<Problem> SocketFaults(const std::vector<SocketMaps>& families, bool rules,
                                  const std::string& pin_directory, uint64_t node_netns);

}  // namespace keelson::ctl
