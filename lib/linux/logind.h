// systemd-logind, as far as who must have time before a shutdown needs it (org.freedesktop.login1(5),
// inhibitor locks in delay mode).
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::linux {

class Logind {  // of one thread
 public:
  // `address` of the bus; empty: the system's. kUnavailable where there is none, or no logind on it.
  static Result<std::unique_ptr<Logind>> Connect(const std::string& address = "");
  virtual ~Logind() = default;

  // How long a shutdown waits at most for those who delay it.
  virtual Result<std::chrono::microseconds> InhibitDelay() = 0;
  // Has logind read its configuration again.
  virtual Result<> Reload() = 0;
  // A shutdown waits as long as the descriptor is open.
  virtual Result<UniqueFd> DelayShutdown(const std::string& who, const std::string& why) = 0;
  // Blocks for the next word of a shutdown: true when it is about to begin, false when it is off. kCancelled
  // on `stop`; kUnavailable when the connection has ended.
  virtual Result<bool> NextShutdown(std::stop_token stop) = 0;
};

}  // namespace keelson::linux
