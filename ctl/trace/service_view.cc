#include "ctl/trace/service_view.h"

#include <netinet/in.h>

namespace keelson::ctl {
namespace {

void AddIp(const std::string& text, Frontend::Kind kind, uint16_t port, PortView& out) {
  if (Result<IpAddress> ip = IpAddress::Parse(text)) out.frontends.push_back({kind, *ip, port});
}

void AddFrontends(const corev1::Service& service, const corev1::ServicePort& port,
                  const std::vector<IpAddress>& node_ips, PortView& out) {
  const corev1::ServiceSpec& spec = service.spec();
  if (spec.cluster_ips().empty()) AddIp(spec.cluster_ip(), Frontend::kClusterIp, out.port, out);
  for (const std::string& ip : spec.cluster_ips()) AddIp(ip, Frontend::kClusterIp, out.port, out);
  for (const std::string& ip : spec.external_ips()) AddIp(ip, Frontend::kExternalIp, out.port, out);
  for (const auto& ingress : service.status().load_balancer().ingress()) {
    // Proxy: the load balancer itself sends to the NodePort; its address means nothing to a node.
    if (ingress.ip_mode() != "Proxy") AddIp(ingress.ip(), Frontend::kLoadBalancer, out.port, out);
  }
  if (port.node_port() == 0) return;
  for (const IpAddress& ip : node_ips) {
    out.frontends.push_back({Frontend::kNodePort, ip, static_cast<uint16_t>(port.node_port())});
  }
}

Endpoint FromSlice(const discoveryv1::Endpoint& endpoint) {
  Endpoint out;
  const auto& conditions = endpoint.conditions();
  out.ready = !conditions.has_ready() || conditions.ready();
  out.serving = conditions.has_serving() ? conditions.serving() : out.ready;
  out.terminating = conditions.terminating();
  out.node = endpoint.node_name();
  out.hinted = endpoint.hints().for_zones_size() > 0 || endpoint.hints().for_nodes_size() > 0;
  const auto& target = endpoint.target_ref();
  if (target.kind() == "Pod") out.pod = target.namespace_() + "/" + target.name();
  return out;
}

// Those of the slice that stand behind `port`.
void AddEndpoints(const discoveryv1::EndpointSlice& slice, PortView& out) {
  for (const auto& port : slice.ports()) {
    if (port.name() != out.name || !port.has_port()) continue;
    for (const auto& from : slice.endpoints()) {
      Result<IpAddress> ip = IpAddress::Parse(from.addresses_size() > 0 ? from.addresses(0) : "");
      if (!ip) continue;
      Endpoint endpoint = FromSlice(from);
      endpoint.ip = *ip;
      endpoint.port = static_cast<uint16_t>(port.port());
      out.endpoints.push_back(std::move(endpoint));
    }
  }
}

}  // namespace

std::string_view KindName(Frontend::Kind kind) {
  switch (kind) {
    case Frontend::kClusterIp:
      return "clusterIP";
    case Frontend::kNodePort:
      return "nodePort";
    case Frontend::kExternalIp:
      return "externalIP";
    case Frontend::kLoadBalancer:
      return "loadBalancer";
  }
  return "";
}

uint8_t PortView::protocol_number() const {
  return protocol == "UDP" ? IPPROTO_UDP : protocol == "SCTP" ? IPPROTO_SCTP : IPPROTO_TCP;
}

ServiceView MakeServiceView(const corev1::Service& service,
                            const std::vector<discoveryv1::EndpointSlice>& slices,
                            const std::vector<IpAddress>& node_ips) {
  const corev1::ServiceSpec& spec = service.spec();
  ServiceView out;
  out.name = service.metadata().namespace_() + "/" + service.metadata().name();
  out.type = spec.type().empty() ? "ClusterIP" : spec.type();
  out.headless = spec.cluster_ip() == "None";
  out.has_selector = spec.selector_size() > 0;
  if (out.type == "ExternalName") out.external_name = spec.external_name();
  out.internal_local = spec.internal_traffic_policy() == "Local";
  out.external_local = spec.external_traffic_policy() == "Local";
  out.session_affinity = spec.session_affinity() == "ClientIP";
  for (const std::string& text : spec.load_balancer_source_ranges()) {
    if (Result<IpPrefix> range = IpPrefix::Parse(text)) out.source_ranges.push_back(range->Masked());
  }
  for (const corev1::ServicePort& port : spec.ports()) {
    PortView& view = out.ports.emplace_back();
    view.name = port.name();
    view.protocol = port.protocol().empty() ? "TCP" : port.protocol();
    view.port = static_cast<uint16_t>(port.port());
    if (out.type != "ExternalName") AddFrontends(service, port, node_ips, view);
    for (const auto& slice : slices) AddEndpoints(slice, view);
  }
  return out;
}

}  // namespace keelson::ctl
