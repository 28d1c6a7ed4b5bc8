// Computes the EndpointSlices of a Service. Pure functions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/endpoints/endpoint_pods.h"
#include "controlplane/controllers/endpoints/hints.h"
#include "lib/api/types.h"

namespace keelson::controllers {

inline constexpr char kServiceName[] = "kubernetes.io/service-name";
inline constexpr char kSliceManagedBy[] = "endpointslice.kubernetes.io/managed-by";
inline constexpr char kSliceController[] = "endpointslice-controller.k8s.io";
inline constexpr char kHeadless[] = "service.kubernetes.io/headless";
inline constexpr size_t kMaxEndpoints = 100;  // per slice, by default

using ZoneOfNode = std::function<std::string(const std::string& node)>;  // empty: unknown
using SlicePointer = std::shared_ptr<const discoveryv1::EndpointSlice>;

// Endpoints with the same list of ports: pods may resolve a named target port differently. Pods on which no
// port resolves share the empty list, because a headless Service still publishes their addresses.
struct EndpointGroup {
  std::vector<discoveryv1::EndpointPort> ports;
  std::vector<discoveryv1::Endpoint> endpoints;
};
// The groups of one address family ("IPv4", "IPv6").
std::vector<EndpointGroup> DesiredEndpoints(const corev1::Service& service,
                                            const std::vector<EndpointPodPointer>& pods,
                                            const std::string& family, const ZoneOfNode& zone_of);

struct SlicePlan {
  std::vector<discoveryv1::EndpointSlice> create, update;
  std::vector<SlicePointer> remove;
  // HintMode::kTopology only: by family, why there are no hints; empty: hints are set.
  std::map<std::string, std::string> hint_problems;
  // For metrics: wanted endpoints, the minimal number of slices, and the endpoints added and removed.
  size_t endpoints = 0, ideal_slices = 0, added = 0, removed = 0;
};
// Plans few writes: endpoints stay in their slices; new ones go into slices that change anyway, then into the
// fullest slice with room for all of them, then into new slices. Each family has at least one slice. A slice
// that has more than `max_endpoints` keeps them.
SlicePlan PlanSlices(const corev1::Service& service, const std::vector<EndpointPodPointer>& pods,
                     const std::vector<SlicePointer>& existing, const ZoneOfNode& zone_of,
                     const ZoneShares& shares = {}, size_t max_endpoints = kMaxEndpoints);

bool IsIpv6Address(std::string_view ip);
bool IsHeadless(const corev1::Service& service);
// spec.ipFamilies, else the family of the cluster IP, else IPv4.
std::vector<std::string> FamiliesOf(const corev1::Service& service);

}  // namespace keelson::controllers
