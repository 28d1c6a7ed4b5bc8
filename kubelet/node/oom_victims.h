// Containers in which the kernel's OOM killer has killed.
//
// Runtimes read it from the container's cgroup after its end. If they look too late the cgroup is gone: systemd
// removes a scope with its last process. The kernel log has the kill, before the process has ended.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// The cgroup of the processes that this record of /dev/kmsg says were killed; nullopt: another record.
std::optional<std::string> OomVictimGroup(std::string_view record);

class OomVictims {  // thread safe
 public:
  // If the log cannot be read, Has() is always false.
  static OomVictims OfKernelLog(const std::string& path = "/dev/kmsg");
  // `log`: non-blocking; a read returns one record.
  explicit OomVictims(UniqueFd log) : log_(std::move(log)) {}

  // Whether a process of the container was killed, from what the log held at the first call until now.
  bool Has(const std::string& container_id);

 private:
  void ReadOn() KEELSON_REQUIRES(mutex_);

  Mutex mutex_;
  const UniqueFd log_;
  std::deque<std::string> groups_ KEELSON_GUARDED_BY(mutex_);  // newest last
};

}  // namespace keelson::kubelet
