// Which EndpointSlices a Service should have. Pure functions without I/O.
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
inline constexpr size_t kMaxEndpoints = 100;  // a slice

using ZoneOfNode = std::function<std::string(const std::string& node)>;  // empty: unknown
using SlicePointer = std::shared_ptr<const discoveryv1::EndpointSlice>;

// Endpoints that share one list of ports: pods may resolve a named target port differently. Pods on which no
// port resolves share the empty list: a headless Service has addresses for them all the same.
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
  // Only with HintMode::kTopology: by family, why there are no hints, or nothing.
  std::map<std::string, std::string> hint_problems;
  // For metrics: what the Service should have, in how few slices that would fit, and how it differs.
  size_t endpoints = 0, ideal_slices = 0, added = 0, removed = 0;
};
// The fewest writes: endpoints stay in their slices, new ones fill slices that are written anyway, then the
// fullest with room for all of them, then new slices. There is always at least one slice a family.
SlicePlan PlanSlices(const corev1::Service& service, const std::vector<EndpointPodPointer>& pods,
                     const std::vector<SlicePointer>& existing, const ZoneOfNode& zone_of,
                     const ZoneShares& shares = {});

bool IsIpv6Address(std::string_view ip);
bool IsHeadless(const corev1::Service& service);
// spec.ipFamilies, or what the cluster IP is of, or IPv4.
std::vector<std::string> FamiliesOf(const corev1::Service& service);

}  // namespace keelson::controllers
