// Whether a pod can run on a node: the rules that the scheduler filters by and the kubelet admits by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::k8s {

// Amounts in upstream's units: milli for cpu, whole numbers for everything else.
struct InsufficientResource {
  std::string resource;
  int64_t requested = 0, used = 0, capacity = 0;
};

// The resources of `requests` that exceed allocatable - used. "pods" comes first: one more than
// used.at("pods").
std::vector<InsufficientResource> CheckResources(const ResourceList& requests,
                                                 const ResourceList& allocatable, const ResourceList& used);

// An amount in milli for cpu, as a whole number (rounded up) for everything else.
int64_t ScaledValue(std::string_view resource, const api::Amount& amount);

// A host port in use. An `ip` of "" means 0.0.0.0, which conflicts with every address of its family.
struct HostPort {
  std::string ip, protocol;
  int32_t port = 0;
  bool operator==(const HostPort&) const = default;
};
bool Conflicts(const HostPort& a, const HostPort& b);

// Why a kubelet rejects a pod: status.reason and status.message of the rejected pod.
struct AdmitFailure {
  std::string reason;  // OutOfcpu, NodeAffinity, NodeName, NodePorts, TaintToleration
  std::string message;
};
// All reasons why `pod` cannot run on `node` beside `others`, the node's admitted pods that have not ended:
// resources, node name, node affinity, host ports, NoExecute taints (static pods are exempt). Empty:
// admitted.
std::vector<AdmitFailure> CheckAdmission(const corev1::Pod& pod, const corev1::Node& node,
                                         const std::vector<const corev1::Pod*>& others);

}  // namespace keelson::k8s
