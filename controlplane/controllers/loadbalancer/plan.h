// Where a Service of type LoadBalancer is reached from outside: at its nodes' own addresses, or at addresses
// of a pool that kube-proxies announce. Pure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/ip_range.h"

namespace keelson::controllers {

inline constexpr char kLoadBalancerFinalizer[] = "service.kubernetes.io/load-balancer-cleanup";
// loadBalancerClass says which; without one, the pool if there is one.
inline constexpr char kNodeAddressClass[] = "keelson.dev/node-addresses";
inline constexpr char kAddressPoolClass[] = "keelson.dev/address-pool";

// Ours to serve: of type LoadBalancer, with a class of ours or none, and not being deleted.
bool IsServed(const corev1::Service& service);
bool UsesPool(const corev1::Service& service, bool there_is_a_pool);

// Of two Services that cannot both have something, the older one has it.
bool Precedes(const corev1::Service& a, const corev1::Service& b);

// "TCP/80", once each.
std::set<std::string> PortsOf(const corev1::Service& service);

// Whether traffic may come in through the node: it is ready, stays, and is not labelled
// node.kubernetes.io/exclude-from-external-load-balancers.
bool TakesTraffic(const corev1::Node& node);

struct BalancerPlan {
  std::vector<IpAddress> addresses;
  std::string problem;    // why there are none, or fewer than asked for; empty: all is well
  bool no_nodes = false;  // there are none because no node takes traffic
};

// Ports of its node that a pod has, in the form of PortsOf(); none while it has no node, or has ended.
std::set<std::string> HostPortsOf(const corev1::Pod& pod);

// External addresses of the nodes, or where no node has one of the family their internal ones. With policy
// Local only of nodes that are in `endpoint_nodes`. A Service takes no port away from a node's kubelet, nor
// from its pods: `host_ports`, by node, says which pod has a port.
BalancerPlan PlanNodeAddresses(const corev1::Service& service,
                               const std::vector<std::shared_ptr<const corev1::Node>>& nodes,
                               const std::set<std::string>& endpoint_nodes,
                               const std::map<std::string, std::map<std::string, std::string>>& host_ports);

// Keeps what the Service has, if it may, and adds what it lacks: one address a family, that of
// spec.loadBalancerIP if it asks for one. `taken` says who else has an address ("namespace/name"), or "".
BalancerPlan PlanPoolAddresses(const corev1::Service& service, const AddressPool& pool,
                               const std::function<std::string(const IpAddress&)>& taken);

// What the Service's status says now.
std::vector<IpAddress> IngressOf(const corev1::Service& service);
void SetIngress(corev1::Service& service, const std::vector<IpAddress>& addresses);

}  // namespace keelson::controllers
