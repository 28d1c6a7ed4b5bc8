// Watches the kernel log for kills by the OOM killer, for SystemOOM events.
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
  std::string cgroup;  // whose limit was exceeded; "/": the machine was out of memory
};

// Parses the lines that the kernel logs about a kill; the last one completes it.
class OomParser {
 public:
  // A record of /dev/kmsg: "6,1234,5678,-;text".
  std::optional<OomKill> Feed(const std::string& record);

 private:
  std::string constraint_group_;
};

// Calls `each` for every kill from now on, until `stop`. An error: the kernel log cannot be read.
Result<> WatchOom(const std::function<void(const OomKill& kill)>& each, std::stop_token stop,
                  const std::string& log = "/dev/kmsg");

}  // namespace keelson::kubelet
