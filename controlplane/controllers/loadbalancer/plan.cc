#include "controlplane/controllers/loadbalancer/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/api/meta.h"
#include "lib/k8s/pods/fit.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr char kExcluded[] = "node.kubernetes.io/exclude-from-external-load-balancers";
constexpr char kLeaving[] = "ToBeDeletedByClusterAutoscaler";

// The Service's IP families in order; true: IPv4.
std::vector<bool> FamiliesOf(const corev1::Service& service) {
  std::vector<bool> out;
  for (const std::string& family : service.spec().ip_families()) out.push_back(family != "IPv6");
  if (out.empty()) out.push_back(true);
  return out;
}

const char* NameOf(bool v4) { return v4 ? "IPv4" : "IPv6"; }

std::set<IpAddress> AddressesOf(const corev1::Node& node, const char* type, bool v4) {
  std::set<IpAddress> out;
  for (const corev1::NodeAddress& address : node.status().addresses()) {
    if (address.type() != type) continue;
    auto ip = IpAddress::Parse(address.address());
    if (ip && ip->is_v4() == v4) out.insert(*ip);
  }
  return out;
}

// Who uses a port that the Service needs: "port TCP/80 of node n1 is its kubelet's". "": none.
std::string Conflict(const corev1::Service& service, const corev1::Node& node,
                     const std::map<std::string, std::string>& host_ports) {
  for (const std::string& port : PortsOf(service)) {
    const int32_t own = node.status().daemon_endpoints().kubelet_endpoint().port();
    auto pod = host_ports.find(port);
    if (own != 0 && port == fmt::format("TCP/{}", own)) {
      return fmt::format("port {} of node {} is its kubelet's", port, node.metadata().name());
    }
    if (pod != host_ports.end()) {
      return fmt::format("port {} of node {} is pod {}'s", port, node.metadata().name(), pod->second);
    }
  }
  return "";
}

}  // namespace

bool IsServed(const corev1::Service& service) {
  if (service.spec().type() != "LoadBalancer" || service.metadata().has_deletion_timestamp()) return false;
  const std::string& name = service.spec().load_balancer_class();
  return name.empty() || name == kNodeAddressClass || name == kAddressPoolClass;
}

bool UsesPool(const corev1::Service& service, bool there_is_a_pool) {
  const std::string& name = service.spec().load_balancer_class();
  return name == kAddressPoolClass || (name.empty() && there_is_a_pool);
}

bool Precedes(const corev1::Service& a, const corev1::Service& b) {
  auto rank = [](const corev1::Service& one) {
    return std::tuple(api::FromTime(one.metadata().creation_timestamp()), api::KeyOf(one));
  };
  return rank(a) < rank(b);
}

std::set<std::string> PortsOf(const corev1::Service& service) {
  std::set<std::string> out;
  for (const corev1::ServicePort& port : service.spec().ports()) {
    out.insert(fmt::format("{}/{}", port.protocol().empty() ? "TCP" : port.protocol(), port.port()));
  }
  return out;
}

std::set<std::string> HostPortsOf(const corev1::Pod& pod) {
  std::set<std::string> out;
  if (pod.spec().node_name().empty() || k8s::IsTerminal(pod)) return out;
  for (const k8s::HostPort& port : k8s::HostPorts(pod.spec())) {
    auto ip = IpAddress::Parse(port.ip);
    if (ip && ip->IsLoopback()) continue;
    out.insert(fmt::format("{}/{}", port.protocol.empty() ? "TCP" : port.protocol, port.port));
  }
  return out;
}

bool TakesTraffic(const corev1::Node& node) {
  if (node.metadata().has_deletion_timestamp() || node.metadata().labels().contains(kExcluded)) return false;
  for (const corev1::Taint& taint : node.spec().taints()) {
    if (taint.key() == kLeaving) return false;
  }
  const auto& conditions = node.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [](const corev1::NodeCondition& condition) {
    return condition.type() == "Ready" && condition.status() == "True";
  });
}

BalancerPlan PlanNodeAddresses(const corev1::Service& service,
                               const std::vector<std::shared_ptr<const corev1::Node>>& nodes,
                               const std::set<std::string>& endpoint_nodes,
                               const std::map<std::string, std::map<std::string, std::string>>& host_ports) {
  BalancerPlan out;
  const bool local = service.spec().external_traffic_policy() == "Local";
  std::vector<const corev1::Node*> ready;
  for (const auto& node : nodes) {
    if (!TakesTraffic(*node) || (local && !endpoint_nodes.contains(node->metadata().name()))) continue;
    auto taken = host_ports.find(node->metadata().name());
    std::string conflict =
        Conflict(service, *node, taken == host_ports.end() ? decltype(taken->second)() : taken->second);
    if (!conflict.empty()) {
      out.problem = std::move(conflict);
      continue;
    }
    ready.push_back(node.get());
  }
  for (bool v4 : FamiliesOf(service)) {
    for (const char* type : {"ExternalIP", "InternalIP"}) {
      std::set<IpAddress> found;
      for (const corev1::Node* node : ready) found.merge(AddressesOf(*node, type, v4));
      out.addresses.insert(out.addresses.end(), found.begin(), found.end());
      if (!found.empty()) break;
    }
  }
  out.no_nodes = out.addresses.empty() && out.problem.empty();
  return out;
}

BalancerPlan PlanPoolAddresses(const corev1::Service& service, const AddressPool& pool,
                               const std::function<std::string(const IpAddress&)>& taken) {
  BalancerPlan out;
  const std::vector<IpAddress> has = IngressOf(service);
  const auto wish = IpAddress::Parse(service.spec().load_balancer_ip());
  const bool any_will_do = service.spec().ip_family_policy() == "PreferDualStack";
  if (!service.spec().load_balancer_ip().empty()) {
    if (!wish || !pool.Contains(*wish)) {
      out.problem = fmt::format("address \"{}\" is not in the pool", service.spec().load_balancer_ip());
      return out;
    }
    if (std::string other = taken(*wish); !other.empty()) {
      out.problem = fmt::format("address {} is taken by Service {}", wish->ToString(), other);
      return out;
    }
  }
  for (bool v4 : FamiliesOf(service)) {
    if (wish && wish->is_v4() == v4) {
      out.addresses.push_back(*wish);
      continue;
    }
    auto kept = std::find_if(has.begin(), has.end(), [&](const IpAddress& ip) {
      return ip.is_v4() == v4 && pool.Contains(ip) && taken(ip).empty();
    });
    if (kept != has.end()) {
      out.addresses.push_back(*kept);
      continue;
    }
    auto free = pool.FirstFree(v4, [&](const IpAddress& ip) { return !taken(ip).empty(); });
    if (free) {
      out.addresses.push_back(*free);
    } else if (!any_will_do || pool.Has(v4)) {
      out.problem = fmt::format("no free {} address in the pool", NameOf(v4));
    }
  }
  if (out.addresses.empty() && out.problem.empty()) out.problem = "no free address in the pool";
  return out;
}

std::vector<IpAddress> IngressOf(const corev1::Service& service) {
  std::vector<IpAddress> out;
  for (const corev1::LoadBalancerIngress& ingress : service.status().load_balancer().ingress()) {
    if (auto ip = IpAddress::Parse(ingress.ip())) out.push_back(*ip);
  }
  return out;
}

void SetIngress(corev1::Service& service, const std::vector<IpAddress>& addresses) {
  corev1::LoadBalancerStatus& status = *service.mutable_status()->mutable_load_balancer();
  status.clear_ingress();
  for (const IpAddress& ip : addresses) {
    corev1::LoadBalancerIngress& ingress = *status.add_ingress();
    ingress.set_ip(ip.ToString());
    ingress.set_ip_mode("VIP");
  }
}

}  // namespace keelson::controllers
