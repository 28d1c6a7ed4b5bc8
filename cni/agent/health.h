// Whether the kernel follows the cluster: the answer of /healthz, and whether the agent works at all: what a
// watchdog asks. Thread safe.
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
  // kUnavailable: syncs began, and none has ended for `patience`. A restart helps then; it does not against an
  // API server that is out of reach or a kernel that refuses, so these are no errors here.
  Result<> Alive() const;

 private:
  const std::chrono::milliseconds patience_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<SteadyTime> last_sync_ KEELSON_GUARDED_BY(mutex_);
  std::optional<SteadyTime> last_end_ KEELSON_GUARDED_BY(mutex_);  // of a sync, failed or not
  std::string failure_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::cni::agent
