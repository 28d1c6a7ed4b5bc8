// Cgroups of pods by name only.
#pragma once

#include <set>
#include <string>

#include "kubelet/cm/pod_cgroups.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class CgroupNames : public PodCgroups {  // thread safe
 public:
  Result<> Start(const NodeContext&) override { return {}; }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext&) override {
    MutexLock lock(mutex_);
    uids_.insert(pod.metadata().uid());
    return {};
  }
  std::string Parent(const corev1::Pod& pod) const override { return "/kubepods/pod" + pod.metadata().uid(); }
  Result<> Remove(const std::string& uid) override {
    MutexLock lock(mutex_);
    uids_.erase(uid);
    return {};
  }
  std::set<std::string> Uids() const override {
    MutexLock lock(mutex_);
    return uids_;
  }
  linux::CgroupUsage Usage(const corev1::Pod&) const override { return {}; }

 private:
  mutable Mutex mutex_;
  std::set<std::string> uids_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
