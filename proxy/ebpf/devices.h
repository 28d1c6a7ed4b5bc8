// The devices that external traffic comes in by, and the programs on them.
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
#include "proxy/ebpf/own_clsact.h"
#include "proxy/ebpf/xdp_programs.h"

namespace keelson::proxy::ebpf {

struct DeviceOptions {
  // Names, with * and ?. Empty: devices with an address that is neither loopback nor link-local, without
  // those of pods.
  std::vector<std::string> names;
  // Connections to other nodes' endpoints are forwarded past the node's rules (bpf/direct.h).
  bool direct = false;
  std::vector<std::string> xdp;     // of these, which get the XDP program (WantsXdp())
  std::vector<IpPrefix> pod_cidrs;  // of both families
  std::string pod_bridge, pod_interface_prefix;
  std::string pin_directory;  // for own_clsact.h and xdp_programs.h
};

// The devices to serve, by index: how many bytes a packet has before its IP header. Links with another header
// than Ethernet's are left out. Pure.
std::map<int, uint32_t> ExternalDevices(const std::vector<netlink::Link>& links,
                                        const std::vector<netlink::Address>& addresses,
                                        const DeviceOptions& options);

struct DirectDevice {
  IpAddress address;  // of the node, on that device
  uint32_t mtu = 0;
  bool operator==(const DirectDevice&) const = default;
};
// Those of `devices` that have an address of the family, by index. Pure.
std::map<int, DirectDevice> DirectDevices(const std::map<int, uint32_t>& devices,
                                          const std::vector<netlink::Link>& links,
                                          const std::vector<netlink::Address>& addresses, bool v4);

// The maps `devices`, `direct_devices` and `fast_devices`.
struct DeviceMaps {
  bpf::Map devices, direct, xdp;
};
// The filters of packets that come in and go out, and the XDP program.
struct DevicePrograms {
  bpf::Program ingress, egress, xdp;
};

// The devices of one network namespace, for one address family. Not thread safe.
class Devices {
 public:
  Devices(linux::NetNs netns, DeviceOptions options, bool v4)
      : netns_(std::move(netns)),
        options_(std::move(options)),
        v4_(v4),
        xdp_(options_.pin_directory + dataplane::kPinsXdp, v4) {}

  // Attaches the programs, in place of older ones, to all devices to serve, and puts these into the maps.
  // Detaches them from devices that are not served any more. `all`: looks at every device, for an earlier
  // process may have served others.
  Result<> Attach(const DevicePrograms& programs, const DeviceMaps& maps, bool all);
  // Detaches all programs of the family. Absent is fine.
  Result<> Detach();

 private:
  // In the namespace.
  Result<> AttachTo(netlink::Socket& socket, int link_index, const DevicePrograms& programs) const;
  Result<> AttachXdp(const bpf::Program& program, const bpf::Map& map,
                     const std::vector<netlink::Link>& links, bool all);
  bool MaySendOn() const;
  const linux::NetNs netns_;
  const DeviceOptions options_;
  const bool v4_;
  const OwnClsact clsact_{options_.pin_directory};
  XdpPrograms xdp_;
  std::map<int, uint32_t> attached_;
};

// Detaches the filters of both families from all devices of the calling thread's network namespace.
Result<> DetachFilters(const std::string& pin_directory);

}  // namespace keelson::proxy::ebpf
