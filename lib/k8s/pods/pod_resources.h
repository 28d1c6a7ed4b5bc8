// What a pod asks of a node and may use at most (k8s.io/component-helpers/resource).
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
  // Of a pod being resized: the largest of spec (unless infeasible), status.allocatedResources and actual.
  bool use_status = false;
};

// max(sum of containers and sidecars, largest init container beside the sidecars started before it), with
// spec.resources in place of it where set, plus overhead.
ResourceList PodRequests(const corev1::Pod& pod, const PodResourcesOptions& options = {});
// The same over limits. A resource without a limit in some container is limited by the others only; overhead
// is added to resources that have a limit.
ResourceList PodLimits(const corev1::Pod& pod, const PodResourcesOptions& options = {});

// An init container with restartPolicy Always: a sidecar.
bool IsSidecar(const corev1::Container& init_container);

// cpu, memory, ephemeral-storage, ... : no slash or in kubernetes.io/, without "requests." prefix.
bool IsNativeResource(std::string_view name);
bool IsHugePages(std::string_view name);         // hugepages-2Mi
bool IsExtendedResource(std::string_view name);  // example.com/gpu
// Resources that spec.resources may set for a whole pod: cpu, memory, hugepages-*.
bool IsPodLevelResource(std::string_view name);

}  // namespace keelson::k8s
