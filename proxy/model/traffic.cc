#include "proxy/model/traffic.h"

#include <algorithm>

namespace keelson::proxy {
namespace {

bool Admits(const std::vector<IpPrefix>& ranges, const IpAddress& source) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const IpPrefix& range) { return range.Contains(source); });
}

Decision Serve(const std::vector<Backend>& endpoints, bool masquerade) {
  return {.verdict = TrafficVerdict::kServed, .endpoints = &endpoints, .masquerade = masquerade};
}

}  // namespace

TrafficVerdict InternalVerdict(const ResolvedPort& port) {
  if (!port.has_endpoints) return TrafficVerdict::kRefused;
  const auto& endpoints = port.service.internal_local ? port.local : port.cluster;
  return endpoints.empty() ? TrafficVerdict::kDropped : TrafficVerdict::kServed;
}

TrafficVerdict ExternalVerdict(const ResolvedPort& port) {
  if (!port.has_endpoints) return TrafficVerdict::kRefused;
  const auto& endpoints = port.service.external_local ? port.local : port.cluster;
  return endpoints.empty() ? TrafficVerdict::kDropped : TrafficVerdict::kServed;
}

Decision Decide(const ResolvedPort& port, Frontend frontend, Origin origin, const IpAddress& source,
                const TrafficOptions& options) {
  const ServicePort& service = port.service;
  if (frontend == Frontend::kLoadBalancerIp && !service.source_ranges.empty() &&
      !Admits(service.source_ranges, source)) {
    return {.verdict = TrafficVerdict::kDropped};
  }
  if (!port.has_endpoints) return {.verdict = TrafficVerdict::kRefused};
  bool known_pod = origin == Origin::kPod && options.detects_pods;
  if (frontend == Frontend::kClusterIp) {
    if (TrafficVerdict verdict = InternalVerdict(port); verdict != TrafficVerdict::kServed) {
      return {.verdict = verdict};
    }
    bool masquerade = options.masquerade_all || (options.detects_pods && origin != Origin::kPod);
    return Serve(service.internal_local ? port.local : port.cluster, masquerade);
  }
  if (!service.external_local) return Serve(port.cluster, true);
  if (known_pod || origin == Origin::kNode) return Serve(port.cluster, origin == Origin::kNode);
  if (port.local.empty()) return {.verdict = TrafficVerdict::kDropped};
  return Serve(port.local, false);
}

std::vector<IpPrefix> AdmittedSources(const ServicePort& port, const std::vector<IpAddress>& node_ips) {
  std::vector<IpPrefix> out = port.source_ranges;
  bool node_admitted = std::any_of(node_ips.begin(), node_ips.end(),
                                   [&](const IpAddress& ip) { return Admits(port.source_ranges, ip); });
  if (!node_admitted) return out;
  for (const IpAddress& ip : port.load_balancer_ips) {
    if (!Admits(port.source_ranges, ip)) out.push_back(IpPrefix::Host(ip));
  }
  return out;
}

}  // namespace keelson::proxy
