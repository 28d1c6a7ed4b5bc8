// What kube-proxy's mode ebpf serves the sockets of pods and of the node with, as it is pinned at this
// moment: maps, decoded, and the programs that read them (proxy/ebpf/bpf/maps.h has the layout, of which this
// is number 1). One directory of pins for each address family.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/ebpf/map_keys.h"
#include "ctl/ebpf/outside_maps.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::ctl {

inline constexpr char kPinDirectory[] = "/sys/fs/bpf/keelson";
inline constexpr int kMapLayout = 1;

enum class Answer : uint8_t { kPass, kServe, kRefuse, kDrop };

struct SocketService {
  uint32_t endpoints = 0;  // slots 0 to endpoints - 1
  std::chrono::seconds affinity{0};
  Answer pods = Answer::kPass, node = Answer::kPass;
};

// Who stays with a target: a network namespace by affinity, a socket of UDP.
struct Stay {
  uint64_t cookie = 0;
  Vip vip;
  Target target;
  std::chrono::nanoseconds used{0};  // of affinity, by CLOCK_MONOTONIC
};

struct MapFill {
  std::string name;
  size_t entries = 0, room = 0;
};

struct SocketProgram {
  std::string name;     // "connect4"
  uint64_t cgroup = 0;  // whose sockets, by number; 0: nobody's
};

struct SocketMaps {
  using Entries = std::vector<std::pair<std::string, std::string>>;

  bool v4 = true;
  std::map<Vip, SocketService> services;
  std::map<std::pair<Vip, uint32_t>, Target> endpoints;  // by slot
  std::set<IpAddress> node_port_ips;
  std::vector<Stay> affinity, flows, sent;
  std::chrono::nanoseconds read_at{0};  // CLOCK_MONOTONIC
  uint64_t node_netns = 0;              // cookie of the namespace that is the node's
  std::vector<MapFill> fill;
  std::vector<SocketProgram> programs;
  std::vector<std::string> missing;  // maps and programs that are not pinned
  OutsideMaps outside;               // what is served at devices

  // What a map of that name holds; one that is not known is passed over. kInvalid when it is no map of
  // this layout.
  Result<> Decode(const std::string& map, const Entries& entries);
  bool IsAttached(std::string_view program) const;
};

// Of both families; none when no program is pinned there. Needs CAP_BPF.
Result<std::vector<SocketMaps>> ReadSocketMaps(const std::string& pin_directory);
// Of the calling thread's network namespace; 0: this kernel does not tell.
uint64_t NetnsCookie();

}  // namespace keelson::ctl
