// The backoff between replacements of failed daemon pods. A node may reject each new pod immediately.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

// The delay is one second after the first replacement and doubles with each further one, up to 15 minutes. An
// entry expires after twice its delay without a failure.
class FailedPodsBackoff {  // thread safe
 public:
  explicit FailedPodsBackoff(Clock& clock) : clock_(clock) {}

  // Returns nullopt, and counts the replacement, when the pod may be replaced now; else the time to wait.
  std::optional<std::chrono::nanoseconds> Replace(const std::string& key);

 private:
  struct Entry {
    std::chrono::nanoseconds delay;
    SteadyTime last;
  };
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
