// The eBPF datapath of one address family: keeps maps equal to a Plan, and the programs that read them
// attached to a cgroup (for sockets) and to devices (for external traffic).
//
// Maps, links and filters outlive the process (lib/dataplane/ebpf_layout.h says where they are). A process
// that starts takes the maps over, writes the difference, and exchanges the programs of the links: every
// connect() is served meanwhile. Maps that have become too small are replaced in the same way. Maps of
// clients are replaced with their contents when another size is wanted. The programs of IPv4 also serve IPv6
// sockets that connect to mapped addresses (::ffff:10.96.0.1).
//
// Not thread safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/bpf/object.h"
#include "lib/dataplane/ebpf_layout.h"
#include "proxy/ebpf/devices.h"
#include "proxy/ebpf/plan.h"

namespace keelson::proxy::ebpf {

// Entries of maps that remember clients; 0: by the machine's memory (map_sizes.h).
struct MapSizes {
  uint32_t affinity_clients = 0;  // one for each pod and each Service with session affinity that it uses
  uint32_t udp_sockets = 0;  // one for each socket that is not connected and each Service that it sends to
};

struct DatapathOptions {
  std::string cgroup;              // a directory of cgroup2, whose processes' sockets are served; empty: all
  std::string pin_directory;       // on a BPF file system
  uint64_t node_netns = 0;         // linux::NetnsCookie() of the node
  uint32_t least_entries = 16384;  // of maps that grow with the Services
  uint32_t masquerade_mark = 0x4000;
  bool dsr = false;          // direct server return (bpf/dsr.h)
  uint32_t connections = 0;  // of external traffic, each of two entries; 0: by the machine's memory
  MapSizes map_sizes;
};

// The mount point of cgroup2. kNotFound: it is not mounted.
Result<std::string> CgroupRoot();

class Datapath {
 public:
  // `devices` of the same family. Null: external traffic is left to the rules.
  Datapath(DatapathOptions options, bool v4, std::unique_ptr<Devices> devices = nullptr)
      : options_(std::move(options)), v4_(v4), devices_(std::move(devices)) {}

  // An error that names what this kernel lacks.
  static Result<> Check();
  struct Written {
    size_t entries = 0;     // that were written or removed
    bool compared = false;  // all maps were read
  };
  // Makes the maps what `plan` wants, and attaches what is not attached. Writes the plan's changes, but the
  // first time, after a failure and after Distrust() the difference from what the maps hold.
  Result<Written> Write(Plan& plan);
  // The next Write() compares.
  void Distrust() { in_step_ = false; }
  // Devices, their addresses or their filters have changed: the next Write() attaches what is missing.
  void LookAtDevices() { devices_stale_ = true; }
  // Somebody may have detached programs: the next Write() attaches what is missing.
  void LookAtPrograms() { programs_stale_ = devices_stale_ = true; }

  // Detaches the programs for sockets, and serves no new connections of external traffic. Once no connection
  // is open, removes everything and returns true. A Write() undoes it.
  Result<bool> Retire();
  // Detaches and removes everything of this family. Absent is fine.
  Result<> Remove();
  // Removes both families, the pin directory, and the log of the kernel's verifier. Absent is fine.
  static Result<> RemoveAll(const std::string& pin_directory);

 private:
  Result<size_t> Compare(Plan& plan);
  Result<> Open(const Plan& plan);
  Result<> Pin();
  // `anew`: after the programs have been loaded.
  Result<> Attach(bool anew);
  Result<> AttachDevices(bool anew);
  Result<> AttachOne(const bpf::Program& program, int cgroup, uint64_t cgroup_id, bool anew);
  Result<> Apply(const Changes& changes);
  std::string Directory() const { return dataplane::FamilyPins(options_.pin_directory, v4_); }
  std::string MapDirectory() const;

  const DatapathOptions options_;
  const bool v4_;
  std::unique_ptr<Devices> devices_;
  bool devices_stale_ = false, programs_stale_ = false;
  std::unique_ptr<bpf::Object> object_;
  std::optional<bpf::Map> maps_[kMapCount];
  bool in_step_ = false;
};

}  // namespace keelson::proxy::ebpf
