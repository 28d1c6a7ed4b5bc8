// Keeps the node from running dry: looks at memory, disks and processes, tells what is short, frees what
// nobody uses, and at last ends pods.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/eviction/plan.h"
#include "lib/base/mutex.h"
#include "lib/k8s/pods/fit.h"
#include "lib/linux/memory_alarm.h"

namespace keelson::kubelet {

class EvictionManager {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  struct Dependencies {
    std::function<Observations(std::stop_token stop)> observe;
    std::function<std::vector<PodPtr>()> pods;  // admitted and not ended
    std::function<PodUsage(const corev1::Pod& pod)> usage;
    std::function<void(const corev1::Pod& pod, const std::string& message, std::chrono::seconds grace)> evict;
    std::function<bool(const std::string& uid)> cleaned_up;  // nothing of the pod holds resources any more
    std::function<void(std::stop_token stop)> remove_containers, remove_images;
    std::function<void(const std::string& reason, const std::string& message)> node_event;
    std::function<DiskLayout()> layout;  // empty: all is on one file system
    // Tells of memory that runs short: of the machine, and of all pods; empty or null: nobody does.
    std::function<std::unique_ptr<linux::MemoryAlarm>()> alarm;
  };
  EvictionManager(Dependencies dependencies, EvictionOptions options, std::vector<Threshold> thresholds,
                  Clock& clock);

  struct Evicted {
    PodPtr pod;
    std::chrono::seconds grace;
  };
  // One look. Returns the pods that have to go: one, or all that are above limits of their own.
  std::vector<Evicted> Synchronize(std::stop_token stop);
  // Looks every ten seconds, when memory runs short, and as soon as evicted pods are cleaned up (or have not
  // been for 30 seconds after their grace period).
  void Run(std::stop_token stop);
  std::set<Pressure> pressures() const;
  // Why a pod is not taken while the node is short of something.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod) const;

 private:
  std::vector<Evicted> EvictForLimits(const std::vector<PodPtr>& pods);
  bool ReclaimFromNode(const Threshold& threshold, const DiskLayout& layout, std::stop_token stop);
  std::vector<Evicted> EvictOne(const Threshold& threshold, const DiskLayout& layout,
                                const std::vector<PodPtr>& pods, const Observations& observations);
  void Await(linux::MemoryAlarm* alarm, std::stop_token stop);
  void AwaitCleanup(const std::vector<Evicted>& pods, std::stop_token stop);
  // nullopt: it is critical.
  std::optional<Evicted> Evict(const PodPtr& pod, const std::string& message, const Threshold* threshold);

  const Dependencies deps_;
  const EvictionOptions options_;
  const std::vector<Threshold> thresholds_;
  Clock& clock_;
  mutable Mutex mutex_;
  EvictionState state_ GUARDED_BY(mutex_);
  Observations last_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
