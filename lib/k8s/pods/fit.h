// Whether a pod can run on a node: the rules that the scheduler filters by and the kubelet admits by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::k8s {

// Amounts in the units upstream reports: milli for cpu, whole numbers for all else.
struct InsufficientResource {
  std::string resource;
  int64_t requested = 0, used = 0, capacity = 0;
};

// Resources of `requests` that exceed allocatable - used; "pods" (one more than used.at("pods")) first.
std::vector<InsufficientResource> CheckResources(const ResourceList& requests,
                                                 const ResourceList& allocatable, const ResourceList& used);

// Milli for cpu, whole numbers (rounded up) for all else.
int64_t ScaledValue(std::string_view resource, const api::Amount& amount);

// A host port in use; protocol and IP ("" is 0.0.0.0, which meets every address of its family).
struct HostPort {
  std::string ip, protocol;
  int32_t port = 0;
  bool operator==(const HostPort&) const = default;
};
bool Conflicts(const HostPort& a, const HostPort& b);

// Why a kubelet does not admit a pod; status.reason and status.message of the rejected pod.
struct AdmitFailure {
  std::string reason;  // OutOfcpu, NodeAffinity, NodeName, NodePorts, TaintToleration
  std::string message;
};
// All reasons why `pod` cannot run on `node` beside `others`, its admitted and not terminated pods:
// resources, node name, node affinity, host ports, NoExecute taints (static pods are exempt from taints).
// Empty: admitted.
std::vector<AdmitFailure> CheckAdmission(const corev1::Pod& pod, const corev1::Node& node,
                                         const std::vector<const corev1::Pod*>& others);

}  // namespace keelson::k8s
