// XDP programs (bpf/xdp.h) at the interfaces whose drivers can run them.
//
//   DIRECTORY/maps-LAYOUT/fast_programs   pinned map: the program of each family
//   DIRECTORY/INDEX                       pinned link: the entry program at an interface
//
// Both families share them. They outlive the process, and the next one takes them over: programs are
// exchanged while packets pass. Where a driver lacks something, the tc filters forward all packets.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/bpf/link.h"
#include "lib/bpf/map.h"
#include "lib/bpf/object.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/dataplane/ebpf_maps.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::proxy::ebpf {

// Whether an interface is wanted: {"auto"} all but veths, for senders on the same machine leave checksums to
// hardware that is not there; {"off"} none; else names, with * and ?. Pure.
bool WantsXdp(const netlink::Link& link, const std::vector<std::string>& names);

// The map entry of an interface, by its driver's netlink::XdpFeature; `features` nullopt: the kernel does not
// tell. nullopt: the program is of no use there. Pure.
std::optional<dataplane::XdpDeviceEntry> XdpUse(const netlink::Link& link, std::optional<uint64_t> features);

// The programs of one family, in the calling thread's network namespace. Not thread safe.
class XdpPrograms {
 public:
  XdpPrograms(std::string directory, bool v4) : directory_(std::move(directory)), v4_(v4) {}

  // Attaches `program` to those of `links` whose drivers can run it, and to no others. Returns their map
  // entries by index. `again`: the program is not that of the last call.
  Result<std::map<int, dataplane::XdpDeviceEntry>> Attach(const bpf::Program& program,
                                                          const std::vector<netlink::Link>& links,
                                                          bool again);
  bool attached() const { return entry_.has_value(); }
  // Detaches this family's program; the other family's stays. Absent is fine.
  Result<> Detach();

 private:
  std::string Maps() const { return directory_ + "/" + dataplane::MapPins(); }
  std::string PathOf(int index) const { return directory_ + "/" + std::to_string(index); }
  uint32_t ProgramIndex() const { return v4_ ? dataplane::kXdpV4 : dataplane::kXdpV6; }
  Result<bpf::Object> LoadEntry() const;
  Result<> EnsureLink(const bpf::Program& entry, int index, bool again) const;
  Result<> RemoveBut(const std::map<int, dataplane::XdpDeviceEntry>& wanted) const;
  void Tell(const netlink::Link& link, const std::string& why);

  const std::string directory_;
  const bool v4_;
  std::optional<bpf::Object> entry_;
  std::map<int, std::string> told_;  // by index, why not; empty: it does
};

}  // namespace keelson::proxy::ebpf
