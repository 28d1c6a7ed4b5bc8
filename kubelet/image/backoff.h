// Exponential back-off by key.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// Waits first, 2 first, 4 first, ... up to max. A key without failure for longer than `quiet` starts again.
class Backoff {  // thread safe
 public:
  // `quiet`: by default twice the maximum.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max, Clock& clock = Clock::Real(),
          std::optional<std::chrono::milliseconds> quiet = std::nullopt)
      : first_(first), max_(max), quiet_(quiet.value_or(2 * max)), clock_(clock) {}

  // The rest of the wait that began at `since`, the time of the last failure; zero: the next try may be made. Later
  // changes of the wall clock do not shorten or prolong it.
  std::chrono::milliseconds Left(const std::string& key, WallTime since);
  std::chrono::milliseconds Current(const std::string& key) const;
  // A try is made: the next wait is the next longer one, or the first one if the key was quiet between the previous
  // try and `since`, the time of the last failure (absent: now).
  void Next(const std::string& key, std::optional<WallTime> since = std::nullopt);
  void Forget(const std::string& key);
  void ForgetPrefix(const std::string& prefix);

 private:
  struct Entry {
    // Whether there was no failure for `quiet` before `event`.
    bool Quiet(SteadyTime event, std::chrono::milliseconds quiet) const { return event - updated > quiet; }
    std::chrono::milliseconds wait;
    SteadyTime updated;
    std::optional<WallTime> failure;  // the last one passed to Left, and when on the steady clock
    SteadyTime failed;
  };
  void Learn(Entry& entry, WallTime since) const;  // records a new failure
  const std::chrono::milliseconds first_, max_, quiet_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
