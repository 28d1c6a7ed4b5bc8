// Socket load balancing in the kernel, for one address family: keeps maps equal to a Plan, and the programs
// that read them attached to a cgroup.
//
// All of it is pinned, and so outlives the process:
//
//   DIRECTORY/v4/maps-LAYOUT/services ...   what maps.h describes
//   DIRECTORY/v4/connect4 ...               links: the programs in their places
//
// A process that starts takes the maps over, writes the difference, and exchanges the programs of the links:
// no connect() goes without. Maps that have become too small are replaced in the same way. The programs of
// IPv4 also serve sockets of IPv6 that connect to mapped addresses (::ffff:10.96.0.1).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/bpf/object.h"
#include "proxy/ebpf/plan.h"

namespace keelson::proxy::ebpf {

struct SocketOptions {
  std::string cgroup;              // a directory of cgroup2: whose sockets are served; empty: all
  std::string pin_directory;       // on a BPF file system
  uint64_t node_netns = 0;         // NetnsCookie() of the node
  uint32_t least_entries = 16384;  // room that maps have at first
};

// Of the calling thread's network namespace.
Result<uint64_t> NetnsCookie();
// Where cgroup2 is mounted; kNotFound when nowhere.
Result<std::string> CgroupRoot();

class Sockets {
 public:
  Sockets(SocketOptions options, bool v4) : options_(std::move(options)), v4_(v4) {}

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

  // Detaches and removes everything of this family; absent is fine.
  Result<> Remove();
  // Of both.
  static Result<> RemoveAll(const std::string& pin_directory);

 private:
  Result<size_t> Compare(Plan& plan);
  Result<> Open(const Plan& plan);
  Result<> Pin();
  Result<> Attach();
  Result<> AttachOne(const bpf::Program& program, int cgroup, uint64_t cgroup_id);
  Result<> Apply(const Changes& changes);
  std::string Directory() const { return options_.pin_directory + (v4_ ? "/v4" : "/v6"); }
  std::string MapDirectory() const;

  const SocketOptions options_;
  const bool v4_;
  std::unique_ptr<bpf::Object> object_;
  std::optional<bpf::Map> maps_[kMapCount];
  bool in_step_ = false;
};

}  // namespace keelson::proxy::ebpf
