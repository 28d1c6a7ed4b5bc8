// What a JobController remembers between syncs. All of it may be lost.
#pragma once

#include <map>
#include <set>
#include <string>

#include "controlplane/controllers/job/failures.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

// Pods, by UID, whose finalizer a Job's sync has taken off and whose store still shows it: a second look must
// not count them again.
class ReleasedPods {  // thread safe
 public:
  void Expect(const std::string& job, const std::set<std::string>& uids);
  void Observed(const std::string& job, const std::string& uid);  // or: failed
  std::set<std::string> Of(const std::string& job);
  void Forget(const std::string& job);

 private:
  Mutex mutex_;
  std::map<std::string, std::set<std::string>> uids_ GUARDED_BY(mutex_);
};

class Backoffs {  // thread safe
 public:
  Backoff Of(const std::string& job);
  void Set(const std::string& job, const Backoff& backoff);
  void Forget(const std::string& job);

 private:
  Mutex mutex_;
  std::map<std::string, Backoff> backoffs_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
