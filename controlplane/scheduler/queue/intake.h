// Turns what informers see into changes of the cache and the queue. Runs on the informers' threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/queue/queue.h"
#include "lib/api/types.h"

namespace keelson::scheduler {

class Intake {
 public:
  // `ours`: whether there is a profile for a spec.schedulerName. `leaves`: told of pods that are on their way
  // from their node, or off it, once the cache knows.
  Intake(std::function<bool(const std::string&)> ours, std::function<void(const PodInfo&)> leaves,
         Cache& cache, SchedulingQueue& queue, Vocabulary& words)
      : ours_(std::move(ours)), leaves_(std::move(leaves)), cache_(cache), queue_(queue), words_(words) {}

  // `pod` is null when it is gone. Of the pod informer's thread.
  void OnPod(const std::string& key, const corev1::Pod* pod);
  // Of the node informer's thread.
  void OnNode(const std::string& name, const corev1::Node* node);
  // Of the namespace informer's thread.
  void OnNamespace(const std::string& name, const corev1::Namespace* ns);
  // Of any thread: claims, volumes, classes, drivers.
  void OnStorage();

 private:
  // They return what has happened, as metrics name it.
  const char* TakePod(const std::string& key, const corev1::Pod* pod);
  const char* TakeNode(const std::string& name, const corev1::Node* node);
  const char* Assigned(PodPtr pod);
  void Released(const std::string& key);
  const char* Waiting(PodPtr pod);
  void StopWaiting(const std::string& key);

  const std::function<bool(const std::string&)> ours_;
  const std::function<void(const PodInfo&)> leaves_;
  Cache& cache_;
  SchedulingQueue& queue_;
  Vocabulary& words_;
  std::unordered_map<std::string, PodPtr> waiting_;  // without a node, ours
  std::unordered_map<std::string, std::shared_ptr<const NodeFacts>> nodes_;
};

}  // namespace keelson::scheduler
