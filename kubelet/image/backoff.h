// Waits that grow with every failure, by key.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// first, 2 first, 4 first, ... up to max. A key that went well for longer than `quiet` starts anew.
class Backoff {  // thread safe
 public:
  // quiet: twice the maximum where it is not given.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max, Clock& clock = Clock::Real(),
          std::optional<std::chrono::milliseconds> quiet = std::nullopt)
      : first_(first), max_(max), quiet_(quiet.value_or(2 * max)), clock_(clock) {}

  // What is left to wait since `since`, the time of the last failure; zero when the next try may be made.
  // The wall clock is looked at once for each failure: who sets it later shortens or prolongs no wait.
  std::chrono::milliseconds Left(const std::string& key, WallTime since);
  std::chrono::milliseconds Current(const std::string& key) const;
  // A try is being made: the wait after it will be the next longer one, or the first again if all went well
  // between the try before it and `since`, the time of the last failure (absent: now).
  void Next(const std::string& key, std::optional<WallTime> since = std::nullopt);
  void Forget(const std::string& key);
  void ForgetPrefix(const std::string& prefix);

 private:
  struct Entry {
    // Has gone well for long before it failed at `event`.
    bool Quiet(SteadyTime event, std::chrono::milliseconds quiet) const { return event - updated > quiet; }
    std::chrono::milliseconds wait;
    SteadyTime updated;
    std::optional<WallTime> failure;  // the last that was asked about, and when that was
    SteadyTime failed;
  };
  void Learn(Entry& entry, WallTime since) const;  // of a failure that was not known yet
  const std::chrono::milliseconds first_, max_, quiet_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
