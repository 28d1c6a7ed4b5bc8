// How long a failed pod is left alone before it is replaced: a node may refuse each new one at once.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

// A second after the first, twice as long after each further one, a quarter of an hour at most; forgotten
// after twice that without a failure.
class FailedPods {  // thread safe
 public:
  explicit FailedPods(Clock& clock) : clock_(clock) {}

  // One more replacement now: nullopt, and it counts; or how long to wait for it.
  std::optional<std::chrono::nanoseconds> Replace(const std::string& key);

 private:
  struct Entry {
    std::chrono::nanoseconds delay;
    SteadyTime last;
  };
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
