// Turns what informers see into changes of the cache and the queue. Runs on the informers' threads.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "controlplane/scheduler/cache.h"
#include "controlplane/scheduler/queue.h"
#include "lib/api/types.h"

namespace keelson::scheduler {

class Intake {
 public:
  Intake(std::string scheduler_name, Cache& cache, SchedulingQueue& queue, ResourceNames& names)
      : scheduler_name_(std::move(scheduler_name)), cache_(cache), queue_(queue), names_(names) {}

  // `pod` is null when it is gone. Of the pod informer's thread.
  void OnPod(const std::string& key, const corev1::Pod* pod);
  // Of the node informer's thread.
  void OnNode(const std::string& name, const corev1::Node* node);

 private:
  void Released(const std::string& key);
  void Waiting(PodPtr pod);

  const std::string scheduler_name_;
  Cache& cache_;
  SchedulingQueue& queue_;
  ResourceNames& names_;
  std::unordered_map<std::string, PodPtr> waiting_;  // without a node, ours
  std::unordered_map<std::string, std::shared_ptr<const NodeFacts>> nodes_;
};

}  // namespace keelson::scheduler
