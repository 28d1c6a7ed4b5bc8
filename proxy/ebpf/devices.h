// The devices that packets from outside come in by, and the programs on them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/bpf/map.h"
#include "lib/bpf/object.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/linux/netns.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "proxy/ebpf/fast_path.h"
#include "proxy/ebpf/own_clsact.h"

namespace keelson::proxy::ebpf {

struct DeviceOptions {
  // Names, with * and ?; empty: those that have an address other than of loopback and the link alone, and are
  // not the pods'.
  std::vector<std::string> names;
  // Connections to other nodes' endpoints are sent on at once, past the node's rules (bpf/direct.h).
  bool direct = false;
  std::vector<std::string> fast;    // of these, which drivers help (WantsFast() of fast_path.h)
  std::vector<IpPrefix> pod_cidrs;  // of both families
  std::string pod_bridge, pod_interface_prefix;
  std::string pin_directory;  // where it is told what else is ours on devices (own_clsact.h, fast_path.h)
};

// By index, how many bytes a packet has before its IP header. What has a header of another kind than
// Ethernet's is left out. Pure.
std::map<int, uint32_t> OutsideDevices(const std::vector<netlink::Link>& links,
                                       const std::vector<netlink::Address>& addresses,
                                       const DeviceOptions& options);

struct DirectWay {
  IpAddress address;  // of the node, on that device
  uint32_t mtu = 0;
  bool operator==(const DirectWay&) const = default;
};
// Those of `devices` that have an address of the family. Pure.
std::map<int, DirectWay> DirectWays(const std::map<int, uint32_t>& devices,
                                    const std::vector<netlink::Link>& links,
                                    const std::vector<netlink::Address>& addresses, bool v4);

// What the programs look up: `devices`, `direct_devices` and `fast_devices`.
struct DeviceMaps {
  bpf::Map devices, direct, fast;
};
// Filters of packets that come in and go out, and what drivers run.
struct DevicePrograms {
  bpf::Program in, out, fast;
};

// Of one address family, in one network namespace.
class Devices {
 public:
  Devices(linux::NetNs netns, DeviceOptions options, bool v4)
      : netns_(std::move(netns)),
        options_(std::move(options)),
        v4_(v4),
        fast_(options_.pin_directory + dataplane::kPinsXdp, v4) {}

  // Puts the programs, if need be in place of others, on all such devices, which are in the maps then, and
  // takes them from those that were such; with `all` from all others, which a process before may have had.
  Result<> Attach(const DevicePrograms& programs, const DeviceMaps& maps, bool all);
  Result<> Detach();

 private:
  // In the namespace.
  Result<> AttachTo(netlink::Socket& socket, int link_index, const DevicePrograms& programs) const;
  Result<> AttachFast(const bpf::Program& program, const bpf::Map& map,
                      const std::vector<netlink::Link>& links, bool all);
  bool MaySendOn() const;
  const linux::NetNs netns_;
  const DeviceOptions options_;
  const bool v4_;
  const OwnClsact clsact_{options_.pin_directory};
  FastPath fast_;
  std::map<int, uint32_t> attached_;
};

// From the devices of the calling thread's network namespace.
Result<> DetachOutside(const std::string& pin_directory);

}  // namespace keelson::proxy::ebpf
