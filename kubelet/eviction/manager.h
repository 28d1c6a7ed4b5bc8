// The eviction manager: watches memory, disks and processes, sets pressure conditions, reclaims unused containers and
// images, and evicts pods.
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
    std::function<std::vector<PodPtr>()> pods;  // active pods
    std::function<PodUsage(const corev1::Pod& pod)> usage;
    std::function<void(const corev1::Pod& pod, const std::string& message, std::chrono::seconds grace)> evict;
    std::function<bool(const std::string& uid)> cleaned_up;  // PodWorkers::IsPodFinished
    std::function<void(std::stop_token stop)> remove_containers, remove_images;
    std::function<void(const std::string& reason, const std::string& message)> node_event;
    std::function<DiskLayout()> layout;  // empty: one file system
    // Notifies when memory of the machine or of all pods runs short; empty or null: not supported.
    std::function<std::unique_ptr<linux::MemoryAlarm>()> alarm;
  };
  EvictionManager(Dependencies dependencies, EvictionOptions options, std::vector<Threshold> thresholds,
                  Clock& clock);

  struct Evicted {
    PodPtr pod;
    std::chrono::seconds grace;
  };
  // One pass. Returns the evicted pods: one, or all that exceed their own limits.
  std::vector<Evicted> Synchronize(std::stop_token stop);
  // Runs passes until `stop`: every ten seconds, when memory runs short, and after evicted pods are cleaned up (or are
  // not 30 seconds after their grace period).
  void Run(std::stop_token stop);
  std::set<Pressure> pressures() const;  // for the node's conditions
  // Why the pod is rejected while the node is under pressure; nullopt: it is not.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod) const;

 private:
  std::vector<Evicted> EvictForLimits(const std::vector<PodPtr>& pods);
  bool ReclaimFromNode(const Threshold& threshold, const DiskLayout& layout, std::stop_token stop);
  std::vector<Evicted> EvictOne(const Threshold& threshold, const DiskLayout& layout,
                                const std::vector<PodPtr>& pods, const Observations& observations);
  void Await(linux::MemoryAlarm* alarm, std::stop_token stop);
  void AwaitCleanup(const std::vector<Evicted>& pods, std::stop_token stop);
  // nullopt: a critical pod, which is not evicted.
  std::optional<Evicted> Evict(const PodPtr& pod, const std::string& message, const Threshold* threshold);

  const Dependencies deps_;
  const EvictionOptions options_;
  const std::vector<Threshold> thresholds_;
  Clock& clock_;
  mutable Mutex mutex_;
  EvictionState state_ KEELSON_GUARDED_BY(mutex_);
  Observations last_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
