#include "proxy/conntrack_cleaner.h"

namespace keelson::proxy {

void ConntrackCleaner::SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
  Service now;
  for (const ResolvedPort& port : ports) {
    const ServicePort& service = port.service;
    if (service.protocol != kUdp) continue;
    std::set<Target> endpoints;
    for (const auto* list : {&port.cluster, &port.local}) {
      for (const Backend& backend : *list) endpoints.insert({backend.ip, backend.port});
    }
    now.vips[{service.cluster_ip, service.port}] = endpoints;
    for (const IpAddress& ip : service.external_ips) now.vips[{ip, service.port}] = endpoints;
    if (service.node_port != 0) now.node_ports[service.node_port] = endpoints;
  }
  auto before = services_.find(key);
  if (before == services_.end() && now.vips.empty()) return;
  // What it had and has no more leads nowhere.
  if (before != services_.end()) {
    for (const auto& [vip, endpoints] : before->second.vips) changed_vips_[vip] = {};
    for (const auto& [port, endpoints] : before->second.node_ports) changed_node_ports_[port] = {};
  }
  for (const auto& [vip, endpoints] : now.vips) changed_vips_[vip] = endpoints;
  for (const auto& [port, endpoints] : now.node_ports) changed_node_ports_[port] = endpoints;
  changed_.insert(key);
  if (now.vips.empty()) {
    services_.erase(key);
  } else {
    services_[key] = std::move(now);
  }
}

bool ConntrackCleaner::LeadsAstray(const netlink::Flow& flow, const std::set<Target>& endpoints) {
  return !endpoints.contains({flow.replier, flow.replier_port});
}

std::vector<netlink::Flow> ConntrackCleaner::TakeStale(const std::vector<netlink::Flow>& flows) {
  std::vector<netlink::Flow> out;
  for (const netlink::Flow& flow : flows) {
    auto vip = changed_vips_.find({flow.destination, flow.destination_port});
    if (vip != changed_vips_.end()) {
      if (LeadsAstray(flow, vip->second)) out.push_back(flow);
      continue;
    }
    auto node_port = changed_node_ports_.find(flow.destination_port);
    if (node_port != changed_node_ports_.end() && node_ips_.contains(flow.destination) &&
        LeadsAstray(flow, node_port->second)) {
      out.push_back(flow);
    }
  }
  changed_.clear();
  changed_vips_.clear();
  changed_node_ports_.clear();
  return out;
}

Result<int> ConntrackCleaner::Clean(netlink::Socket& socket) {
  ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows, netlink::ListFlows(socket, true, kUdp));
  ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows_v6, netlink::ListFlows(socket, false, kUdp));
  flows.insert(flows.end(), flows_v6.begin(), flows_v6.end());
  int removed = 0;
  for (const netlink::Flow& flow : TakeStale(flows)) {
    ASSIGN_OR_RETURN(bool was_there, netlink::DeleteFlow(socket, flow));
    removed += was_there;
  }
  return removed;
}

}  // namespace keelson::proxy
