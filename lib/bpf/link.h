// Attached programs (bpf_link). A program stays attached as long as a file descriptor or a file in a BPF
// file system holds the link, and can be replaced without a gap. Linux 5.7 and later; 5.9 for drivers.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/bpf/object.h"

namespace keelson::bpf {

class Link {
 public:
  // Attaches to a cgroup, beside programs of others. `cgroup` is a descriptor of its directory.
  static Result<Link> AttachCgroup(const Program& program, int cgroup);
  // Attaches to the driver of an interface (XDP) in the calling thread's network namespace. A driver takes
  // one program. EOPNOTSUPP and others: the driver does not support it, or not with the interface's
  // configuration.
  static Result<Link> AttachDriver(const Program& program, int link_index);
  static Result<Link> OpenPinned(const std::string& path);  // kNotFound when nothing is there
  // Keeps the link alive by a file on a BPF file system.
  Result<> Pin(const std::string& path) const;
  // Detaches at once, whoever else holds the link. Otherwise the kernel does it some time after the last
  // holder has gone.
  Result<> Detach() const;
  // Replaces the program without a gap.
  Result<> Update(const Program& program) const;
  // For a link to a cgroup: the cgroup's id (the inode of its directory); 0: it has been removed.
  Result<uint64_t> CgroupId() const;
  // For a link to an interface: its index; 0: it has gone.
  Result<int> DeviceIndex() const;

 private:
  explicit Link(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace keelson::bpf
