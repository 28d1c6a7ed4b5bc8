// The part of systemd-logind that delays a shutdown (org.freedesktop.login1(5), inhibitor locks in delay
// mode).
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
  // `address`: of the bus; empty: the system bus. kUnavailable: no bus, or no logind on it.
  static Result<std::unique_ptr<Logind>> Connect(const std::string& address = "");
  virtual ~Logind() = default;

  // How long a shutdown waits at most for delay locks (InhibitDelayMaxSec).
  virtual Result<std::chrono::microseconds> InhibitDelay() = 0;
  // Makes logind read its configuration again.
  virtual Result<> Reload() = 0;
  // Takes a delay lock: a shutdown waits as long as the returned descriptor is open. `who` and `why` are
  // shown to users.
  virtual Result<UniqueFd> DelayShutdown(const std::string& who, const std::string& why) = 0;
  // Blocks until logind announces a shutdown (true) or calls it off (false). kCancelled on `stop`;
  // kUnavailable when the connection has ended.
  virtual Result<bool> NextShutdown(std::stop_token stop) = 0;
};

}  // namespace keelson::linux
