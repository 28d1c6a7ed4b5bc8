// Programs in their places (bpf_link): attached as long as a file descriptor or a file in a BPF file system
// holds the link. A program is exchanged for another one without a gap. Linux 5.7 and later, to drivers 5.9.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/bpf/object.h"

namespace keelson::bpf {

class Link {
 public:
  // Beside what others have attached there.
  static Result<Link> AttachCgroup(const Program& program, int cgroup);
  // At the driver of an interface of the calling thread's network namespace (XDP), which has room for one
  // program. EOPNOTSUPP and others: the driver cannot, or not as the interface is set up.
  static Result<Link> AttachDriver(const Program& program, int link_index);
  static Result<Link> OpenPinned(const std::string& path);  // kNotFound when nothing is there
  Result<> Pin(const std::string& path) const;
  // At once, whoever else holds it. Without, the kernel does it some time after the last holder has gone.
  Result<> Detach() const;
  Result<> Update(const Program& program) const;
  // Of a link to a cgroup: which one (the inode of its directory); 0: it has been removed.
  Result<uint64_t> CgroupId() const;
  // Of a link to an interface: which one; 0: it has gone.
  Result<int> DeviceIndex() const;

 private:
  explicit Link(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace keelson::bpf
