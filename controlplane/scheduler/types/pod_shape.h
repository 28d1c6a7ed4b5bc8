// What filters and scores that look at one node ask of a pod, worked out once for all pods that are alike:
// those of a ReplicaSet share one shape. Two pods of one shape fit the same nodes with the same scores,
// volumes and other pods aside.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/types/resources.h"
#include "lib/api/types.h"
#include "lib/k8s/pods/fit.h"
#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::scheduler {

struct PreferredTerm {
  int32_t weight;
  k8s::NodeTerm term;
};

struct PodShape {
  uint64_t id;
  int32_t priority;
  bool never_preempts;  // preemptionPolicy: Never
  bool best_effort;     // asks for neither cpu nor memory
  Resources requests;   // pods is 1
  Resources scoring;    // cpu and memory, with defaults for containers that ask for none
  size_t image_users;   // containers of all kinds, and volumes made of images
  std::vector<k8s::HostPort> ports;
  k8s::Tolerations tolerations;
  k8s::RequiredNodeAffinity affinity;
  std::vector<PreferredTerm> preferred;
  std::vector<std::string> images;    // as nodes name them
  std::vector<std::string> features;  // of nodes that the pod cannot do without, sorted

  PodShape(uint64_t id, const corev1::Pod& pod, NameIds& resources);
};

std::shared_ptr<const PodShape> ShapeOf(const corev1::Pod& pod, Vocabulary& words);

// cpu and memory that a pod counts for when nodes are scored, given what it asks for.
Resources ScoringOf(const corev1::Pod& pod, const Resources& requests);

}  // namespace keelson::scheduler
