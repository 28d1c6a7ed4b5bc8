#include "controlplane/controllers/loadbalancer/plan.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

corev1::Service Balanced(std::vector<std::string> families = {"IPv4"}) {
  corev1::Service service;
  service.mutable_metadata()->set_name("web");
  service.mutable_metadata()->set_namespace_("default");
  service.mutable_spec()->set_type("LoadBalancer");
  for (const std::string& family : families) service.mutable_spec()->add_ip_families(family);
  service.mutable_spec()->add_ports()->set_port(80);
  return service;
}

using Addresses = std::vector<std::pair<const char*, const char*>>;  // type, address

corev1::Node NodeAt(const std::string& name, const Addresses& addresses, const char* ready = "True") {
  corev1::Node node = NodeNamed(name, ready);
  for (const auto& [type, text] : addresses) {
    corev1::NodeAddress& address = *node.mutable_status()->add_addresses();
    address.set_type(type);
    address.set_address(text);
  }
  return node;
}

std::string Text(const BalancerPlan& plan) {
  std::string out;
  for (const IpAddress& ip : plan.addresses) out += ip.ToString() + " ";
  return out + plan.problem + (plan.no_nodes ? "no nodes" : "");
}

TEST(NodeAddressesTest, Chooses) {
  const corev1::Node a = NodeAt("a", {{"InternalIP", "10.0.0.1"}, {"InternalIP", "fd00::1"}});
  const corev1::Node b = NodeAt("b", {{"Hostname", "b"}, {"InternalIP", "10.0.0.2"}});
  const corev1::Node public_one = NodeAt("p", {{"InternalIP", "10.0.0.3"}, {"ExternalIP", "192.0.2.3"}});
  const corev1::Node silent = NodeAt("s", {{"InternalIP", "10.0.0.4"}}, "Unknown");
  corev1::Node excluded = NodeAt("x", {{"InternalIP", "10.0.0.5"}});
  (*excluded.mutable_metadata()->mutable_labels())["node.kubernetes.io/exclude-from-external-load-balancers"];
  corev1::Node leaving = NodeAt("l", {{"InternalIP", "10.0.0.6"}});
  leaving.mutable_spec()->add_taints()->set_key("ToBeDeletedByClusterAutoscaler");
  corev1::Node busy = NodeAt("k", {{"InternalIP", "10.0.0.7"}});
  busy.mutable_status()->mutable_daemon_endpoints()->mutable_kubelet_endpoint()->set_port(80);
  const corev1::Node held = NodeAt("h", {{"InternalIP", "10.0.0.8"}});
  corev1::Service local = Balanced();
  local.mutable_spec()->set_external_traffic_policy("Local");

  struct Case {
    const char* what;
    corev1::Service service;
    std::vector<corev1::Node> nodes;
    const char* want;
  };
  const Case cases[] = {
      {"all ready nodes", Balanced(), {b, a}, "10.0.0.1 10.0.0.2 "},
      {"external addresses before internal ones", Balanced(), {a, public_one}, "192.0.2.3 "},
      {"silent, excluded and leaving nodes take nothing",
       Balanced(),
       {silent, excluded, leaving, a},
       "10.0.0.1 "},
      {"nobody", Balanced(), {silent}, "no nodes"},
      {"the other family", Balanced({"IPv6"}), {a, b}, "fd00::1 "},
      {"both, in the Service's order", Balanced({"IPv6", "IPv4"}), {a, b}, "fd00::1 10.0.0.1 10.0.0.2 "},
      {"policy Local: where endpoints are", local, {a, b}, "10.0.0.2 "},
      {"the kubelet's port", Balanced(), {busy, a}, "10.0.0.1 port TCP/80 of node k is its kubelet's"},
      {"a pod's port", Balanced(), {held, a}, "10.0.0.1 port TCP/80 of node h is pod default/web's"},
  };
  for (const Case& one : cases) {
    std::vector<std::shared_ptr<const corev1::Node>> nodes;
    for (const corev1::Node& node : one.nodes) nodes.push_back(std::make_shared<corev1::Node>(node));
    EXPECT_EQ(Text(PlanNodeAddresses(one.service, nodes, {"b"}, {{"h", {{"TCP/80", "default/web"}}}})),
              one.want)
        << one.what;
  }
}

TEST(HostPortsTest, OfPodsThatHaveThem) {
  corev1::Pod pod = PodNamed("p", {}, "n1");
  auto add = [&](int port, const char* protocol, const char* ip) {
    corev1::ContainerPort& one = *pod.mutable_spec()->mutable_containers(0)->add_ports();
    one.set_container_port(1);
    one.set_host_port(port);
    one.set_protocol(protocol);
    one.set_host_ip(ip);
  };
  add(0, "TCP", "");
  add(80, "TCP", "");
  add(53, "UDP", "10.0.0.1");
  add(81, "TCP", "127.0.0.1");
  EXPECT_EQ(HostPortsOf(pod), (std::set<std::string>{"TCP/80", "UDP/53"}));
  pod.mutable_status()->set_phase("Failed");
  EXPECT_TRUE(HostPortsOf(pod).empty());
  EXPECT_TRUE(HostPortsOf(PodNamed("p")).empty());
}

TEST(PoolAddressesTest, Chooses) {
  const std::vector<std::string> v4 = {"192.0.2.10-192.0.2.12"}, both = {"192.0.2.10-192.0.2.12", "fd00::10"};
  auto has = [](corev1::Service service, const char* ip) {
    service.mutable_status()->mutable_load_balancer()->add_ingress()->set_ip(ip);
    return service;
  };
  auto asks = [](corev1::Service service, const char* ip) {
    service.mutable_spec()->set_load_balancer_ip(ip);
    return service;
  };
  corev1::Service prefers = Balanced({"IPv4", "IPv6"});
  prefers.mutable_spec()->set_ip_family_policy("PreferDualStack");
  struct Case {
    const char* what;
    corev1::Service service;
    std::vector<std::string> pool, taken;
    const char* want;
  };
  const Case cases[] = {
      {"the first", Balanced(), v4, {}, "192.0.2.10 "},
      {"the first free", Balanced(), v4, {"192.0.2.10", "192.0.2.11"}, "192.0.2.12 "},
      {"none left", Balanced(), {"192.0.2.9"}, {"192.0.2.9"}, "no free IPv4 address in the pool"},
      {"what it has", has(Balanced(), "192.0.2.12"), v4, {}, "192.0.2.12 "},
      {"what it has, but an older one too", has(Balanced(), "192.0.2.12"), v4, {"192.0.2.12"}, "192.0.2.10 "},
      {"what it has, from another pool", has(Balanced(), "192.0.2.99"), v4, {}, "192.0.2.10 "},
      {"what it asks for", asks(Balanced(), "192.0.2.12"), v4, {}, "192.0.2.12 "},
      {"what it asks for, not what it has",
       asks(has(Balanced(), "192.0.2.10"), "192.0.2.12"),
       v4,
       {},
       "192.0.2.12 "},
      {"asked for and taken",
       asks(Balanced(), "192.0.2.12"),
       v4,
       {"192.0.2.12"},
       "address 192.0.2.12 is taken by Service other"},
      {"asked for elsewhere",
       asks(Balanced(), "198.51.100.1"),
       v4,
       {},
       "address \"198.51.100.1\" is not in the pool"},
      {"no such family", Balanced({"IPv6"}), v4, {}, "no free IPv6 address in the pool"},
      {"both families", Balanced({"IPv6", "IPv4"}), both, {}, "fd00::10 192.0.2.10 "},
      {"both wanted, one there",
       Balanced({"IPv4", "IPv6"}),
       v4,
       {},
       "192.0.2.10 no free IPv6 address in the pool"},
      {"both liked, one there", prefers, v4, {}, "192.0.2.10 "},
      {"both liked, one used up", prefers, both, {"fd00::10"}, "192.0.2.10 no free IPv6 address in the pool"},
  };
  for (const Case& one : cases) {
    const AddressPool pool = *AddressPool::Parse(one.pool);
    auto taken = [&](const IpAddress& ip) {
      return std::find(one.taken.begin(), one.taken.end(), ip.ToString()) == one.taken.end() ? "" : "other";
    };
    EXPECT_EQ(Text(PlanPoolAddresses(one.service, pool, taken)), one.want) << one.what;
  }
}

TEST(IsServedTest, ByClass) {
  corev1::Service service = Balanced();
  EXPECT_TRUE(IsServed(service));
  EXPECT_TRUE(UsesPool(service, true));
  EXPECT_FALSE(UsesPool(service, false));
  service.mutable_spec()->set_load_balancer_class(kNodeAddressClass);
  EXPECT_TRUE(IsServed(service));
  EXPECT_FALSE(UsesPool(service, true));
  service.mutable_spec()->set_load_balancer_class(kAddressPoolClass);
  EXPECT_TRUE(UsesPool(service, false));
  service.mutable_spec()->set_load_balancer_class("example.com/other");
  EXPECT_FALSE(IsServed(service));
}

}  // namespace
}  // namespace keelson::controllers
