#include "controlplane/controllers/resourceclaim/deleted_pods.h"

namespace keelson::controllers {

void DeletedPods::Add(const std::string& uid) {
  MutexLock lock(mutex_);
  if (!uids_.insert(uid).second) return;
  order_.push_back(uid);
  if (order_.size() <= most_) return;
  uids_.erase(order_.front());
  order_.pop_front();
}

bool DeletedPods::Has(const std::string& uid) const {
  MutexLock lock(mutex_);
  return uids_.count(uid) > 0;
}

}  // namespace keelson::controllers
