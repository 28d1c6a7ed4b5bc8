#include "proxy/sync/conntrack_cleaner.h"

namespace keelson::proxy {

void ConntrackCleaner::Add(const ResolvedPort& port, Service& into) {
  const ServicePort& service = port.service;
  if (service.protocol != kUdp || port.serving.empty()) return;
  std::set<Target> endpoints;
  for (const Backend& backend : port.serving) endpoints.insert({backend.ip, backend.port});
  into.vips[{service.cluster_ip, service.port}] = endpoints;
  for (const auto* list : {&service.external_ips, &service.load_balancer_ips}) {
    for (const IpAddress& ip : *list) into.vips[{ip, service.port}] = endpoints;
  }
  if (service.node_port != 0) into.node_ports[service.node_port].insert(endpoints.begin(), endpoints.end());
}

void ConntrackCleaner::SetService(const std::string& key, const std::vector<ResolvedPort>& v4,
                                  const std::vector<ResolvedPort>& v6) {
  Service now;
  for (const auto* ports : {&v4, &v6}) {
    for (const ResolvedPort& port : *ports) Add(port, now);
  }
  auto before = services_.find(key);
  if (now.vips.empty()) {
    if (before != services_.end()) services_.erase(before);
    return;
  }
  if (before != services_.end() && before->second == now) return;
  for (const auto& [vip, endpoints] : now.vips) changed_vips_[vip] = endpoints;
  for (const auto& [port, endpoints] : now.node_ports) changed_node_ports_[port] = endpoints;
  changed_.insert(key);
  services_[key] = std::move(now);
}

bool ConntrackCleaner::IsStale(const netlink::Flow& flow, const std::set<Target>& endpoints) {
  return !endpoints.contains({flow.replier, flow.replier_port});
}

std::vector<netlink::Flow> ConntrackCleaner::TakeStale(const std::vector<netlink::Flow>& flows) {
  std::vector<netlink::Flow> out;
  for (const netlink::Flow& flow : flows) {
    auto vip = changed_vips_.find({flow.destination, flow.destination_port});
    if (vip != changed_vips_.end()) {
      if (IsStale(flow, vip->second)) out.push_back(flow);
      continue;
    }
    auto node_port = changed_node_ports_.find(flow.destination_port);
    if (node_port != changed_node_ports_.end() && node_ips_.contains(flow.destination) &&
        IsStale(flow, node_port->second)) {
      out.push_back(flow);
    }
  }
  changed_.clear();
  changed_vips_.clear();
  changed_node_ports_.clear();
  return out;
}

Result<ConntrackCleaner::Removed> ConntrackCleaner::Clean(netlink::Socket& socket) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows, netlink::ListFlows(socket, true, kUdp));
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows_v6, netlink::ListFlows(socket, false, kUdp));
  flows.insert(flows.end(), flows_v6.begin(), flows_v6.end());
  Removed removed;
  for (const netlink::Flow& flow : TakeStale(flows)) {
    KEELSON_ASSIGN_OR_RETURN(bool was_there, netlink::DeleteFlow(socket, flow));
    (flow.source.is_v4() ? removed.v4 : removed.v6) += was_there;
  }
  return removed;
}

}  // namespace keelson::proxy
