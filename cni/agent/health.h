// Whether the kernel follows the cluster: the answer of /healthz. Thread safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::cni::agent {

class Health {
 public:
  // Unhealthy until the first sync, after a failed one, and when there was none for `patience`.
  Health(std::chrono::milliseconds patience, Clock& clock) : patience_(patience), clock_(clock) {}

  void Synced();
  void Failed(const Error& error);
  // Empty when healthy; otherwise the problem.
  std::string Complaint() const;

 private:
  const std::chrono::milliseconds patience_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<SteadyTime> last_sync_ KEELSON_GUARDED_BY(mutex_);
  std::string failure_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::cni::agent
