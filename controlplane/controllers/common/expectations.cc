#include "controlplane/controllers/common/expectations.h"

namespace keelson::controllers {

void Expectations::Expect(const std::string& key, int creations, const std::vector<std::string>& deletions) {
  MutexLock lock(mutex_);
  outstanding_[key] = {creations, {deletions.begin(), deletions.end()}, clock_.SteadyNow()};
}

void Expectations::CreationObserved(const std::string& key) {
  MutexLock lock(mutex_);
  auto it = outstanding_.find(key);
  if (it != outstanding_.end() && it->second.creations > 0) --it->second.creations;
}

void Expectations::DeletionObserved(const std::string& key, const std::string& pod) {
  MutexLock lock(mutex_);
  auto it = outstanding_.find(key);
  if (it != outstanding_.end()) it->second.deletions.erase(pod);
}

bool Expectations::Satisfied(const std::string& key) {
  constexpr std::chrono::minutes kLost{5};
  MutexLock lock(mutex_);
  auto it = outstanding_.find(key);
  if (it == outstanding_.end()) return true;
  if (it->second.creations == 0 && it->second.deletions.empty()) return true;
  return clock_.SteadyNow() - it->second.since > kLost;
}

void Expectations::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  outstanding_.erase(key);
}

}  // namespace keelson::controllers
