// The informers' event handlers: they update the cache and the scheduling queue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/queue/queue.h"
#include "lib/api/types.h"

namespace keelson::scheduler {

class EventHandlers {
 public:
  // `responsible_for`: whether a profile serves a spec.schedulerName. `on_pod_leaving`: called with pods that
  // are terminating, or have left their node, after the cache has been updated. References outlive this.
  EventHandlers(std::function<bool(const std::string&)> responsible_for,
                std::function<void(const PodInfo&)> on_pod_leaving, Cache& cache, SchedulingQueue& queue,
                Vocabulary& words)
      : responsible_for_(std::move(responsible_for)),
        on_pod_leaving_(std::move(on_pod_leaving)),
        cache_(cache),
        queue_(queue),
        words_(words) {}

  // A pod, "namespace/name", was added or has changed; null: it is gone. The pod informer's thread only.
  void OnPod(const std::string& key, const corev1::Pod* pod);
  // The same for a node. The node informer's thread only.
  void OnNode(const std::string& name, const corev1::Node* node);
  // The same for a namespace. The namespace informer's thread only.
  void OnNamespace(const std::string& name, const corev1::Namespace* ns);
  // A claim, volume, class or driver has changed. Thread safe.
  void OnStorage();

 private:
  // These return the event's name in metrics.
  const char* HandlePod(const std::string& key, const corev1::Pod* pod);
  const char* HandleNode(const std::string& name, const corev1::Node* node);
  const char* AddPodToCache(PodPtr pod);
  const char* AddPodToSchedulingQueue(PodPtr pod);
  void DeletePodFromCache(const std::string& key);
  void DeletePodFromSchedulingQueue(const std::string& key);

  const std::function<bool(const std::string&)> responsible_for_;
  const std::function<void(const PodInfo&)> on_pod_leaving_;
  Cache& cache_;
  SchedulingQueue& queue_;
  Vocabulary& words_;
  std::unordered_map<std::string, PodPtr> unscheduled_pods_;  // without a node, and of our profiles
  std::unordered_map<std::string, std::shared_ptr<const NodeFacts>> nodes_;
};

}  // namespace keelson::scheduler
