#include "cni/agent/health.h"

namespace keelson::cni::agent {

void Health::Synced() {
  MutexLock lock(mutex_);
  last_sync_ = last_end_ = clock_.SteadyNow();
  failure_.clear();
}

void Health::Failed(const Error& error) {
  MutexLock lock(mutex_);
  last_end_ = clock_.SteadyNow();
  failure_ = error.message();
}

std::string Health::Complaint() const {
  MutexLock lock(mutex_);
  if (!failure_.empty()) return failure_;
  if (!last_sync_) return "no sync yet: the API server has not been reached";
  auto age = std::chrono::duration_cast<std::chrono::seconds>(clock_.SteadyNow() - *last_sync_);
  if (age > patience_) return "the last sync was " + std::to_string(age.count()) + " s ago";
  return "";
}

Result<> Health::Alive() const {
  MutexLock lock(mutex_);
  if (!last_end_) return {};
  auto age = std::chrono::duration_cast<std::chrono::seconds>(clock_.SteadyNow() - *last_end_);
  if (age <= patience_) return {};
  return Error(Code::kUnavailable, "no sync has ended for " + std::to_string(age.count()) + " s");
}

}  // namespace keelson::cni::agent
