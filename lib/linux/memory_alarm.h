// Reports when memory of cgroups may have become short, so that callers need not poll:
//
//   v1  when usage has grown by a given amount (cgroup.event_control, memory.usage_in_bytes)
//   v2  when tasks of the machine wait for memory for a tenth of two seconds (a trigger on
//       /proc/pressure/memory), and when a cgroup meets one of its limits (memory.events)
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/linux/cgroup.h"

namespace keelson::linux {

class MemoryAlarm {  // one thread
 public:
  // Events that the kernel does not support are not reported; a caller polls now and then as well.
  MemoryAlarm(Cgroups cgroups, std::vector<std::string> paths);

  // v1 only: reports when the usage of paths[index] has grown by `growth_bytes` from now. Replaces the
  // earlier threshold for `index`.
  Result<> Arm(size_t index, int64_t growth_bytes);
  // Blocks for an event. False: `limit` has passed or `stop` was requested.
  bool Wait(std::chrono::milliseconds limit, std::stop_token stop);

 private:
  const Cgroups cgroups_;
  const std::vector<std::string> paths_;
  std::vector<UniqueFd> thresholds_;  // v1, by index: an eventfd; closed: none
  UniqueFd pressure_, changes_;       // v2: the trigger, and inotify
  UniqueFd stop_;
};

}  // namespace keelson::linux
