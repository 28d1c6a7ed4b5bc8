#include "proxy/model/traffic.h"

#include <algorithm>

namespace keelson::proxy {
namespace {

bool Admits(const std::vector<IpPrefix>& ranges, const IpAddress& source) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const IpPrefix& range) { return range.Contains(source); });
}

Decision Serve(const std::vector<Backend>& endpoints, bool masquerade) {
  return {.fate = Fate::kServed, .endpoints = &endpoints, .masquerade = masquerade};
}

}  // namespace

Fate InternalFate(const ResolvedPort& port) {
  if (!port.has_endpoints) return Fate::kRefused;
  const auto& endpoints = port.service.internal_local ? port.local : port.cluster;
  return endpoints.empty() ? Fate::kDropped : Fate::kServed;
}

Fate ExternalFate(const ResolvedPort& port) {
  if (!port.has_endpoints) return Fate::kRefused;
  const auto& endpoints = port.service.external_local ? port.local : port.cluster;
  return endpoints.empty() ? Fate::kDropped : Fate::kServed;
}

Decision Decide(const ResolvedPort& port, Entry entry, Origin origin, const IpAddress& source,
                const TrafficOptions& options) {
  const ServicePort& service = port.service;
  if (entry == Entry::kLoadBalancerIp && !service.source_ranges.empty() &&
      !Admits(service.source_ranges, source)) {
    return {.fate = Fate::kDropped};
  }
  if (!port.has_endpoints) return {.fate = Fate::kRefused};
  bool known_pod = origin == Origin::kPod && options.detects_pods;
  if (entry == Entry::kClusterIp) {
    if (Fate fate = InternalFate(port); fate != Fate::kServed) return {.fate = fate};
    bool masquerade = options.masquerade_all || (options.detects_pods && origin != Origin::kPod);
    return Serve(service.internal_local ? port.local : port.cluster, masquerade);
  }
  if (!service.external_local) return Serve(port.cluster, true);
  if (known_pod || origin == Origin::kNode) return Serve(port.cluster, origin == Origin::kNode);
  if (port.local.empty()) return {.fate = Fate::kDropped};
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
