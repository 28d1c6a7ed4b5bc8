// Programs that drivers run before there are packets of the kernel's (XDP; bpf/fast.h), for who can run them.
//
//   DIRECTORY/maps-LAYOUT/fast_programs   pinned: what each family runs
//   DIRECTORY/INDEX                       a link that is pinned: the entry at an interface
//
// All of it is both families', outlives the process, and is taken over by the next one: programs are
// exchanged while packets pass. Where a driver cannot, or not all that is needed, the filters behind do it
// all.
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

// Which interfaces are asked: {"auto"} all but veths, whose senders on the same machine leave checksums to
// hardware that nobody has; {"off"} none; else names, with * and ?. Pure.
bool WantsFast(const netlink::Link& link, const std::vector<std::string>& names);

// What an interface that runs the program may be used for, by what its driver says (netlink::XdpFeature;
// nullopt: the kernel does not tell). nullopt: nothing. Pure.
std::optional<dataplane::XdpDeviceEntry> FastUse(const netlink::Link& link, std::optional<uint64_t> features);

// Of one family, in the calling thread's network namespace.
class FastPath {
 public:
  FastPath(std::string directory, bool v4) : directory_(std::move(directory)), v4_(v4) {}

  // Has `program` run at those of `links` that can, and no others; by index, what they may be used for.
  // `again`: the program is another one than last time.
  Result<std::map<int, dataplane::XdpDeviceEntry>> Attach(const bpf::Program& program,
                                                          const std::vector<netlink::Link>& links,
                                                          bool again);
  bool attached() const { return entry_.has_value(); }
  // The other family goes on. Absent is fine.
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
