// Requests and limits of pods (k8s.io/component-helpers/resource).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <google/protobuf/map.h>

#include "lib/api/quantity.h"
#include "lib/api/types.h"

namespace keelson::k8s {

using QuantityMap = google::protobuf::Map<std::string, Quantity>;
using ResourceList = std::map<std::string, api::Amount, std::less<>>;

ResourceList ToResourceList(const QuantityMap& quantities);
void FromResourceList(const ResourceList& list, QuantityMap& quantities);
void Add(ResourceList& to, const ResourceList& by);
void Max(ResourceList& to, const ResourceList& by);  // the larger of each resource
// Zero when absent.
api::Amount AmountOf(const ResourceList& list, std::string_view resource);

struct PodResourcesOptions {
  bool exclude_overhead = false;
  bool exclude_pod_level = false;  // ignore spec.resources
  // For a pod being resized: use the largest of spec (unless infeasible), status.allocatedResources and
  // actual amounts.
  bool use_status = false;
};

// The pod's requests: max(sum of containers and sidecars, largest init container beside the sidecars
// started before it), or spec.resources where set, plus overhead.
ResourceList PodRequests(const corev1::Pod& pod, const PodResourcesOptions& options = {});
// The pod's limits, computed like PodRequests(). A container without a limit for a resource does not count
// for it; overhead is added only to resources that have a limit.
ResourceList PodLimits(const corev1::Pod& pod, const PodResourcesOptions& options = {});

// A sidecar is an init container with restartPolicy Always.
bool IsSidecar(const corev1::Container& init_container);

// cpu, memory, ephemeral-storage, ...: without a slash or in kubernetes.io/, and without the prefix
// "requests.".
bool IsNativeResource(std::string_view name);
bool IsHugePages(std::string_view name);         // hugepages-2Mi
bool IsExtendedResource(std::string_view name);  // example.com/gpu
// Resources that spec.resources may set for a whole pod: cpu, memory, hugepages-*.
bool IsPodLevelResource(std::string_view name);

}  // namespace keelson::k8s
