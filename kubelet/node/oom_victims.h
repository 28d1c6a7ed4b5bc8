// Which containers the kernel has killed in for lack of memory.
//
// Runtimes learn of it from the container's cgroup, beside its end. Where they look too late the cgroup is
// gone: systemd removes a scope with its last process. The kernel's log keeps it, and has it before the
// process has ended.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// The cgroup of the process, or of all the processes, that this record of /dev/kmsg tells the end of.
std::optional<std::string> OomVictimGroup(std::string_view record);

class OomVictims {  // thread safe
 public:
  // Where the log cannot be read nobody is known to have been killed.
  static OomVictims OfKernelLog(const std::string& path = "/dev/kmsg");
  // A read is one record, and never waits.
  explicit OomVictims(UniqueFd log) : log_(std::move(log)) {}

  // As far back as the log went when it was first asked, and up to now.
  bool Has(const std::string& container_id);

 private:
  void ReadOn() REQUIRES(mutex_);

  Mutex mutex_;
  const UniqueFd log_;
  std::deque<std::string> groups_ GUARDED_BY(mutex_);  // newest last
};

}  // namespace keelson::kubelet
