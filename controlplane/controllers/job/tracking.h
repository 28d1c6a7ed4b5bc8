// In-memory state of the Job controller between syncs. Correctness does not depend on it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "controlplane/controllers/job/failures.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

// UIDs of pods whose finalizer a sync has removed while the store still shows it, as upstream's
// uidTrackingExpectations. The next sync must not count them again.
class FinalizerExpectations {  // thread safe
 public:
  void Expect(const std::string& job, const std::set<std::string>& uids);
  void Observed(const std::string& job, const std::string& uid);  // also call when the removal failed
  std::set<std::string> Of(const std::string& job);
  void Forget(const std::string& job);

 private:
  Mutex mutex_;
  std::map<std::string, std::set<std::string>> uids_ KEELSON_GUARDED_BY(mutex_);
};

// The pod creation backoff of each Job.
class BackoffStore {  // thread safe
 public:
  Backoff Of(const std::string& job);
  void Set(const std::string& job, const Backoff& backoff);
  void Forget(const std::string& job);

 private:
  Mutex mutex_;
  std::map<std::string, Backoff> backoffs_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
