#include "proxy/model/service_change_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/types.h"

namespace keelson::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

corev1::Service MakeService() {
  corev1::Service service;
  service.mutable_metadata()->set_namespace_("default");
  service.mutable_metadata()->set_name("web");
  auto& spec = *service.mutable_spec();
  spec.set_type("ClusterIP");
  spec.set_cluster_ip("10.96.0.1");
  spec.add_cluster_ips("10.96.0.1");
  spec.add_cluster_ips("fd96::1");
  auto& port = *spec.add_ports();
  port.set_name("http");
  port.set_port(80);
  port.set_protocol("TCP");
  return service;
}

struct EndpointSpec {
  const char* ip;
  const char* node = "other";
  bool ready = true, serving = true, terminating = false;
  const char* zone_hint = nullptr;
};

discoveryv1::EndpointSlice MakeSlice(std::initializer_list<EndpointSpec> endpoints,
                                     const char* type = "IPv4") {
  discoveryv1::EndpointSlice slice;
  slice.mutable_metadata()->set_namespace_("default");
  (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "web";
  slice.set_address_type(type);
  auto& port = *slice.add_ports();
  port.set_name("http");
  port.set_port(8080);
  for (const EndpointSpec& e : endpoints) {
    auto& added = *slice.add_endpoints();
    added.add_addresses(e.ip);
    added.set_node_name(e.node);
    added.mutable_conditions()->set_ready(e.ready);
    added.mutable_conditions()->set_serving(e.serving);
    added.mutable_conditions()->set_terminating(e.terminating);
    if (e.zone_hint) added.mutable_hints()->add_for_zones()->set_name(e.zone_hint);
  }
  return slice;
}

std::vector<std::string> Names(const std::vector<Backend>& backends) {
  std::vector<std::string> out;
  for (const Backend& b : backends) {
    out.push_back(b.ip.ToString() + ":" + std::to_string(b.port) + (b.local ? "*" : ""));
  }
  return out;
}

class ServiceMapTest : public ::testing::Test {
 protected:
  void Set(const corev1::Service& service, const discoveryv1::EndpointSlice& slice) {
    map_.UpdateService("default/web", &service);
    map_.UpdateSlice("default/web-1", &slice);
  }
  ResolvedPort Only(bool v4 = true) {
    auto ports = map_.Resolve("default/web", v4);
    EXPECT_EQ(ports.size(), 1u);
    return ports.empty() ? ResolvedPort() : ports[0];
  }
  ServiceChangeTracker map_{NodeTopology{"here", "zone-a"}};
};

TEST_F(ServiceMapTest, ReadyEndpointsOfEachFamily) {
  Set(MakeService(),
      MakeSlice(
          {{.ip = "10.1.0.2"}, {.ip = "10.1.0.1", .node = "here"}, {.ip = "10.1.0.3", .ready = false}}));
  auto slice6 = MakeSlice({{.ip = "fd01::1"}}, "IPv6");
  map_.UpdateSlice("default/web-2", &slice6);
  EXPECT_THAT(Names(Only().cluster), ElementsAre("10.1.0.1:8080*", "10.1.0.2:8080"));
  EXPECT_THAT(Names(Only(false).cluster), ElementsAre("fd01::1:8080"));
  EXPECT_EQ(Only().service.name, "default/web:http");
  EXPECT_THAT(map_.TakeChanged(), ElementsAre("default/web"));
  EXPECT_THAT(map_.TakeChanged(), IsEmpty());
}

TEST_F(ServiceMapTest, TerminatingEndpointsServeOnlyWhenNoneIsReady) {
  EndpointSpec leaving{
      .ip = "10.1.0.1", .node = "here", .ready = false, .serving = true, .terminating = true};
  auto service = MakeService();
  service.mutable_spec()->set_external_traffic_policy("Local");
  service.mutable_spec()->mutable_ports(0)->set_node_port(30080);
  Set(service, MakeSlice({leaving, {.ip = "10.1.0.2"}}));
  EXPECT_THAT(Names(Only().cluster), ElementsAre("10.1.0.2:8080"));
  EXPECT_THAT(Names(Only().local), ElementsAre("10.1.0.1:8080*"));
  Set(service, MakeSlice({leaving}));
  EXPECT_THAT(Names(Only().cluster), ElementsAre("10.1.0.1:8080*"));
  leaving.serving = false;
  Set(service, MakeSlice({leaving}));
  EXPECT_THAT(Names(Only().cluster), IsEmpty());
}

TEST_F(ServiceMapTest, SaysNothingOfWhatDoesNotMatter) {
  auto service = MakeService();
  auto slice = MakeSlice({{.ip = "10.1.0.1"}});
  Set(service, slice);
  map_.TakeChanged();
  (*service.mutable_metadata()->mutable_annotations())["x"] = "y";
  slice.mutable_metadata()->set_resource_version("7");
  EXPECT_FALSE(map_.UpdateService("default/web", &service));
  EXPECT_FALSE(map_.UpdateSlice("default/web-1", &slice));
  EXPECT_THAT(map_.TakeChanged(), IsEmpty());
}

TEST_F(ServiceMapTest, LeavesOthersServicesAlone) {
  auto headless = MakeService();
  headless.mutable_spec()->set_cluster_ip("None");
  headless.mutable_spec()->clear_cluster_ips();
  EXPECT_FALSE(map_.UpdateService("default/web", &headless));
  auto external = MakeService();
  external.mutable_spec()->set_type("ExternalName");
  EXPECT_FALSE(map_.UpdateService("default/web", &external));
  auto other = MakeService();
  (*other.mutable_metadata()->mutable_labels())["service.kubernetes.io/service-proxy-name"] = "x";
  EXPECT_FALSE(map_.UpdateService("default/web", &other));
}

TEST_F(ServiceMapTest, DeletionAndMovedSlices) {
  Set(MakeService(), MakeSlice({{.ip = "10.1.0.1"}}));
  map_.TakeChanged();
  EXPECT_TRUE(map_.UpdateSlice("default/web-1", nullptr));
  EXPECT_THAT(Names(Only().cluster), IsEmpty());
  EXPECT_TRUE(map_.UpdateService("default/web", nullptr));
  EXPECT_THAT(map_.Resolve("default/web", true), IsEmpty());
  EXPECT_THAT(map_.TakeChanged(), ElementsAre("default/web"));
}

TEST_F(ServiceMapTest, LoadBalancersAndAffinity) {
  auto service = MakeService();
  auto& spec = *service.mutable_spec();
  spec.set_type("LoadBalancer");
  spec.set_external_traffic_policy("Local");
  spec.set_health_check_node_port(31000);
  spec.set_session_affinity("ClientIP");
  spec.add_external_ips("192.0.2.1");
  spec.add_load_balancer_source_ranges("203.0.113.128/25");
  spec.add_load_balancer_source_ranges(" 203.0.113.0/24");
  service.mutable_status()->mutable_load_balancer()->add_ingress()->set_ip("192.0.2.2");
  auto& proxied = *service.mutable_status()->mutable_load_balancer()->add_ingress();
  proxied.set_ip("192.0.2.3");
  proxied.set_ip_mode("Proxy");
  Set(service, MakeSlice({{.ip = "10.1.0.1", .node = "here"}, {.ip = "10.1.0.2"}}));
  ServicePort port = Only().service;
  EXPECT_EQ(port.external_ips.size(), 1u);
  ASSERT_EQ(port.load_balancer_ips.size(), 1u);
  EXPECT_EQ(port.load_balancer_ips[0].ToString(), "192.0.2.2");
  ASSERT_EQ(port.source_ranges.size(), 1u);
  EXPECT_EQ(port.source_ranges[0].ToString(), "203.0.113.0/24");
  EXPECT_EQ(port.affinity.count(), 10800);
  auto checks = map_.HealthCheckNodePorts();
  EXPECT_EQ(checks["default/web"].port, 31000);
  EXPECT_EQ(checks["default/web"].local_ready, 1u);
}

TEST_F(ServiceMapTest, IgnoresWhatCannotBe) {
  auto service = MakeService();
  auto& port = *service.mutable_spec()->add_ports();
  port.set_name("beyond");
  port.set_port(70000);
  service.mutable_spec()->add_external_ips("nonsense");
  auto slice = MakeSlice({{.ip = "nonsense"}, {.ip = "127.0.0.1"}, {.ip = "0.0.0.0"}, {.ip = "224.0.0.1"}});
  slice.add_ports()->set_port(-1);
  Set(service, slice);
  EXPECT_THAT(Names(Only().cluster), IsEmpty());
  EXPECT_THAT(Only().service.external_ips, IsEmpty());
}

TEST_F(ServiceMapTest, LeavesExternalIpsOutWhenTold) {
  auto service = MakeService();
  service.mutable_spec()->add_external_ips("192.0.2.1");
  ServiceChangeTracker without(NodeTopology{"here", ""}, false);
  without.UpdateService("default/web", &service);
  const std::vector<ResolvedPort> ports = without.Resolve("default/web", true);
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_THAT(ports[0].service.external_ips, IsEmpty());
}

}  // namespace
}  // namespace keelson::proxy
