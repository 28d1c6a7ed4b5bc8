// Load balancing by eBPF in the kernel, for one address family: keeps maps equal to a Plan, and the programs
// that read them attached to a cgroup (for sockets) and to devices (for packets from outside).
//
// All of it outlives the process:
//
//   DIRECTORY/v4/maps-LAYOUT/services ...   pinned: what maps.h describes
//   DIRECTORY/v4/connect4 ...               pinned links: the programs for sockets in their places
//   DIRECTORY/fast                          what drivers run (fast_path.h), of both families
//   filters of the devices (devices.h)      stay with the devices
//
// A process that starts takes the maps over, writes the difference, and exchanges the programs of the links:
// no connect() goes without. Maps that have become too small are replaced in the same way, those of clients
// when they are to be of another size, with what is in them. The programs of
// IPv4 also serve sockets of IPv6 that connect to mapped addresses (::ffff:10.96.0.1).
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

// 0: by the machine's memory.
struct Rooms {
  uint32_t affinity_clients = 0;  // pods, each with each Service that it stays with an endpoint of
  uint32_t udp_sockets = 0;       // that are not connected, each with each Service that it sends to
};

struct SocketOptions {
  std::string cgroup;              // a directory of cgroup2: whose sockets are served; empty: all
  std::string pin_directory;       // on a BPF file system
  uint64_t node_netns = 0;         // linux::NetnsCookie() of the node
  uint32_t least_entries = 16384;  // room that maps have at first
  uint32_t masquerade_mark = 0x4000;
  bool dsr = false;          // answers of other nodes' endpoints go straight to who asked (bpf/dsr.h)
  uint32_t connections = 0;  // from outside, each of two entries; 0: by the machine's memory
  Rooms rooms;
};

// Where cgroup2 is mounted; kNotFound when nowhere.
Result<std::string> CgroupRoot();

class Sockets {
 public:
  // Without `devices` packets from outside are left alone.
  Sockets(SocketOptions options, bool v4, std::unique_ptr<Devices> devices = nullptr)
      : options_(std::move(options)), v4_(v4), devices_(std::move(devices)) {}

  // What this kernel lacks.
  static Result<> Check();
  // Writes what `plan` wants; the first time, and after a failure, by comparison with what is there.
  // How many entries have been written or removed, and whether maps were compared.
  struct Written {
    size_t entries = 0;
    bool compared = false;
  };
  Result<Written> Write(Plan& plan);
  void Distrust() { in_step_ = false; }
  // Devices, their addresses or their filters have changed: the next Write() looks, and mends.
  void LookAtDevices() { devices_stale_ = true; }
  // Somebody may have taken programs away from their places.
  void LookAtPrograms() { programs_stale_ = devices_stale_ = true; }

  // Sockets are served no more, and from outside those only that are connected. Then everything goes, if
  // nobody is: true. A Write() undoes it.
  Result<bool> Retire();
  // Detaches and removes everything of this family; absent is fine.
  Result<> Remove();
  // Of both, with the directory and what the kernel's verifier has said.
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

  const SocketOptions options_;
  const bool v4_;
  std::unique_ptr<Devices> devices_;
  bool devices_stale_ = false, programs_stale_ = false;
  std::unique_ptr<bpf::Object> object_;
  std::optional<bpf::Map> maps_[kMapCount];
  bool in_step_ = false;
};

}  // namespace keelson::proxy::ebpf
