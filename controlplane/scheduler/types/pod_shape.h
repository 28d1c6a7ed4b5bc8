// A pod's shape: what local filters and scores read of it, those that depend on one node alone. Pods of one
// ReplicaSet share a shape. Pods of one shape fit the same nodes with the same scores, apart from what volumes
// and other pods decide.
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
  bool never_preempts;          // preemptionPolicy: Never
  bool best_effort;             // requests neither cpu nor memory
  Resources requests;           // pods is 1
  Resources non_zero_requests;  // cpu and memory, with defaults for containers without requests
  size_t image_users;           // containers of all kinds, and volumes made of images
  std::vector<k8s::HostPort> ports;
  k8s::Tolerations tolerations;
  k8s::RequiredNodeAffinity affinity;
  std::vector<PreferredTerm> preferred;
  std::vector<std::string> images;    // in the form of node.status.images
  std::vector<std::string> features;  // node features that the pod requires, sorted

  PodShape(uint64_t id, const corev1::Pod& pod, NameIds& resources);
};

// The shape of a pod; never null.
std::shared_ptr<const PodShape> ShapeOf(const corev1::Pod& pod, Vocabulary& words);

// The cpu and memory that a pod with these requests counts for in scores.
Resources NonZeroRequests(const corev1::Pod& pod, const Resources& requests);

}  // namespace keelson::scheduler
