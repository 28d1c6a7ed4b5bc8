// Tells when the kernel has killed a process because the whole machine was out of memory.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/base/error.h"

namespace keelson::kubelet {

struct OomKill {
  std::string process;
  int pid = 0;
  std::string cgroup;  // whose limit it was; "/" for the machine's
};

// Reads the lines that the kernel writes of one kill; what it knows is told with the last of them.
class OomParser {
 public:
  // A record of /dev/kmsg: "6,1234,5678,-;text".
  std::optional<OomKill> Feed(const std::string& record);

 private:
  std::string constraint_group_;
};

// Calls `each` for every kill from now on. An error where the kernel's log cannot be read.
Result<> WatchOom(const std::function<void(const OomKill& kill)>& each, std::stop_token stop,
                  const std::string& log = "/dev/kmsg");

}  // namespace keelson::kubelet
