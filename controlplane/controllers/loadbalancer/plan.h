// The external addresses of a Service of type LoadBalancer: addresses of the nodes, or addresses of a pool
// that kube-proxies announce. Pure functions.
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
// Values of loadBalancerClass. Without a class: the pool if there is one, else node addresses.
inline constexpr char kNodeAddressClass[] = "keelson.dev/node-addresses";
inline constexpr char kAddressPoolClass[] = "keelson.dev/address-pool";

// True when the Service is of type LoadBalancer, has no class or one of the two above, and is not being
// deleted.
bool IsServed(const corev1::Service& service);
bool UsesPool(const corev1::Service& service, bool there_is_a_pool);

// True when `a` takes precedence over `b` in a conflict: the older Service does.
bool Precedes(const corev1::Service& a, const corev1::Service& b);

// The Service's ports as "TCP/80", without duplicates.
std::set<std::string> PortsOf(const corev1::Service& service);

// True when external traffic may enter through the node: it is ready, not being removed, and not labelled
// node.kubernetes.io/exclude-from-external-load-balancers.
bool TakesTraffic(const corev1::Node& node);

struct BalancerPlan {
  std::vector<IpAddress> addresses;
  std::string problem;    // why there are no addresses, or fewer than requested; empty: none
  bool no_nodes = false;  // no address because no node takes traffic
};

// The host ports of a pod, as "TCP/80"; empty when the pod has no node or has ended.
std::set<std::string> HostPortsOf(const corev1::Pod& pod);

// Returns the nodes' external addresses; where no node has one of a family, the internal ones. With
// externalTrafficPolicy Local only nodes in `endpoint_nodes` count. Skips a node if the kubelet or a pod on
// it uses one of the Service's ports; `host_ports` maps node, then port, to the pod.
BalancerPlan PlanNodeAddresses(const corev1::Service& service,
                               const std::vector<std::shared_ptr<const corev1::Node>>& nodes,
                               const std::set<std::string>& endpoint_nodes,
                               const std::map<std::string, std::map<std::string, std::string>>& host_ports);

// Keeps valid addresses of the Service and adds the missing ones: one per IP family, spec.loadBalancerIP if
// set. `taken` returns the "namespace/name" of another Service that has an address, or "".
BalancerPlan PlanPoolAddresses(const corev1::Service& service, const AddressPool& pool,
                               const std::function<std::string(const IpAddress&)>& taken);

// The addresses in the Service's status.
std::vector<IpAddress> IngressOf(const corev1::Service& service);
void SetIngress(corev1::Service& service, const std::vector<IpAddress>& addresses);

}  // namespace keelson::controllers
