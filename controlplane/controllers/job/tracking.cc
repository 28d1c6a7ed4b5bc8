#include "controlplane/controllers/job/tracking.h"

namespace keelson::controllers {

void FinalizerExpectations::Expect(const std::string& job, const std::set<std::string>& uids) {
  MutexLock lock(mutex_);
  if (!uids.empty()) uids_[job].insert(uids.begin(), uids.end());
}

void FinalizerExpectations::Observed(const std::string& job, const std::string& uid) {
  MutexLock lock(mutex_);
  auto it = uids_.find(job);
  if (it == uids_.end()) return;
  it->second.erase(uid);
  if (it->second.empty()) uids_.erase(it);
}

std::set<std::string> FinalizerExpectations::Of(const std::string& job) {
  MutexLock lock(mutex_);
  auto it = uids_.find(job);
  return it == uids_.end() ? std::set<std::string>() : it->second;
}

void FinalizerExpectations::Forget(const std::string& job) {
  MutexLock lock(mutex_);
  uids_.erase(job);
}

Backoff BackoffStore::Of(const std::string& job) {
  MutexLock lock(mutex_);
  auto it = backoffs_.find(job);
  return it == backoffs_.end() ? Backoff() : it->second;
}

void BackoffStore::Set(const std::string& job, const Backoff& backoff) {
  MutexLock lock(mutex_);
  if (backoff.failures == 0) {
    backoffs_.erase(job);
  } else {
    backoffs_[job] = backoff;
  }
}

void BackoffStore::Forget(const std::string& job) {
  MutexLock lock(mutex_);
  backoffs_.erase(job);
}

}  // namespace keelson::controllers
