// A fake PodCgroups that remembers names only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "kubelet/cm/cgroups/pod_cgroups.h"
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
  bool KillContainer(const corev1::Pod&, const std::string& id) override { return kill_ && kill_(id); }
  // What KillContainer does; set before the kubelet starts.
  void KillBy(std::function<bool(const std::string& id)> kill) { kill_ = std::move(kill); }

 private:
  std::function<bool(const std::string& id)> kill_;
  mutable Mutex mutex_;
  std::set<std::string> uids_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
