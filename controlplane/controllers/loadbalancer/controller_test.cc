#include "controlplane/controllers/loadbalancer/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using Strings = std::vector<std::string>;

class LoadBalancerTest : public ::testing::Test {
 protected:
  void Make(const Strings& pool = {}) {
    controller_ = &cluster_.Make<LoadBalancerController>(*AddressPool::Parse(pool));
  }
  void Run() {
    if (!started_) cluster_.Start();
    started_ = true;
    cluster_.Drain({controller_});
    EXPECT_EQ(cluster_.errors, Strings{});
  }
  // Younger by a second than the one before.
  corev1::Service Put(const std::string& name, int port = 80) {
    corev1::Service service;
    service.mutable_metadata()->set_name(name);
    service.mutable_metadata()->set_namespace_("default");
    service.mutable_metadata()->mutable_creation_timestamp()->set_seconds(++created_);
    service.mutable_spec()->set_type("LoadBalancer");
    service.mutable_spec()->add_ip_families("IPv4");
    service.mutable_spec()->add_ports()->set_port(port);
    return cluster_.fake->Put(service);
  }
  void PutNode(const std::string& name, const char* ip, const char* ready = "True") {
    corev1::Node node = NodeNamed(name, ready);
    corev1::NodeAddress& address = *node.mutable_status()->add_addresses();
    address.set_type("InternalIP");
    address.set_address(ip);
    cluster_.fake->Put(node);
  }
  void PutSlice(const std::string& service, const std::string& node, bool ready) {
    discoveryv1::EndpointSlice slice;
    slice.mutable_metadata()->set_name(service + "-1");
    slice.mutable_metadata()->set_namespace_("default");
    (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = service;
    discoveryv1::Endpoint& endpoint = *slice.add_endpoints();
    endpoint.set_node_name(node);
    endpoint.mutable_conditions()->set_ready(ready);
    cluster_.fake->Put(slice);
  }
  corev1::Service Get(const std::string& name) { return cluster_.Get<corev1::Service>("default", name); }
  std::string Ingress(const std::string& name) {
    std::string out;
    for (const IpAddress& ip : IngressOf(Get(name))) out += ip.ToString() + " ";
    return out;
  }
  void Delete(const std::string& name) {
    ASSERT_TRUE(cluster_.api.Delete<corev1::Service>("default", name, {}));
  }

  TestCluster cluster_;
  LoadBalancerController* controller_ = nullptr;
  bool started_ = false;
  int created_ = 0;
};

TEST_F(LoadBalancerTest, NodesComeAndGo) {
  Make();
  PutNode("a", "10.0.0.1");
  Put("web");
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.1 ");
  EXPECT_EQ(Get("web").status().load_balancer().ingress(0).ip_mode(), "VIP");
  EXPECT_EQ(Get("web").metadata().finalizers(0), "service.kubernetes.io/load-balancer-cleanup");
  PutNode("b", "10.0.0.2");
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.1 10.0.0.2 ");
  PutNode("a", "10.0.0.1", "Unknown");
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.2 ");
  PutNode("b", "10.0.0.2", "False");
  Run();
  EXPECT_EQ(Ingress("web"), "");
  EXPECT_EQ(
      cluster_.Events(),
      (Strings{"EnsuredLoadBalancer: Ensured load balancer", "EnsuringLoadBalancer: Ensuring load balancer",
               "UnAvailableLoadBalancer: There are no available nodes for LoadBalancer",
               "UpdatedLoadBalancer: Updated load balancer with new hosts: 10.0.0.1,10.0.0.2",
               "UpdatedLoadBalancer: Updated load balancer with new hosts: 10.0.0.2"}));
}

TEST_F(LoadBalancerTest, AtRestWritesNothing) {
  Make();
  PutNode("a", "10.0.0.1");
  Put("web");
  Run();
  cluster_.fake->ForgetRequests();
  PutNode("a", "10.0.0.1");  // a heartbeat
  controller_->queue().Add("default/web");
  Run();
  EXPECT_EQ(cluster_.fake->Requests(), Strings{});
}

TEST_F(LoadBalancerTest, PolicyLocalFollowsEndpoints) {
  Make();
  PutNode("a", "10.0.0.1");
  PutNode("b", "10.0.0.2");
  corev1::Service service = Put("web");
  service.mutable_spec()->set_external_traffic_policy("Local");
  cluster_.fake->Put(service);
  PutSlice("web", "a", true);
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.1 ");
  PutSlice("web", "b", true);
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.2 ");
  PutSlice("web", "b", false);
  Run();
  EXPECT_EQ(Ingress("web"), "");
}

TEST_F(LoadBalancerTest, OnePortOfTheNodesIsOneServices) {
  Make();
  PutNode("a", "10.0.0.1");
  Put("first");
  Put("second");
  Put("other", 443);
  Run();
  EXPECT_EQ(Ingress("first"), "10.0.0.1 ");
  EXPECT_EQ(Ingress("second"), "");
  EXPECT_EQ(Ingress("other"), "10.0.0.1 ");
  Delete("first");
  Run();
  EXPECT_EQ(Ingress("second"), "10.0.0.1 ");
  const Strings events = cluster_.Events();
  EXPECT_EQ(std::count(events.begin(), events.end(),
                       "SyncLoadBalancerFailed: Error syncing load balancer: port TCP/80 of the nodes is "
                       "taken by Service default/first"),
            1);
}

TEST_F(LoadBalancerTest, NodeWhosePodHasThePortIsLeftOut) {
  Make();
  PutNode("a", "10.0.0.1");
  PutNode("b", "10.0.0.2");
  Put("web");
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.1 10.0.0.2 ");
  corev1::Pod pod = PodNamed("edge", {}, "a");
  pod.mutable_spec()->mutable_containers(0)->add_ports()->set_host_port(80);
  cluster_.fake->Put(pod);
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.2 ");
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "edge", {.grace_period_seconds = 0}));
  Run();
  EXPECT_EQ(Ingress("web"), "10.0.0.1 10.0.0.2 ");
}

TEST_F(LoadBalancerTest, PoolIsGivenOutWithoutDoubles) {
  Make({"192.0.2.1-192.0.2.2"});
  for (const char* name : {"a", "b", "c"}) Put(name);
  Run();
  EXPECT_EQ(Ingress("a") + Ingress("b"), "192.0.2.1 192.0.2.2 ");
  EXPECT_EQ(Ingress("c"), "");
  Delete("a");
  Run();
  EXPECT_FALSE(cluster_.api.Get<corev1::Service>("default", "a"));
  EXPECT_EQ(Ingress("c"), "192.0.2.1 ");
}

TEST_F(LoadBalancerTest, TypeThatChangesGivesBack) {
  Make({"192.0.2.1"});
  Put("a");
  Run();
  Put("b");
  Run();
  ASSERT_EQ(Ingress("a"), "192.0.2.1 ");
  corev1::Service service = Get("a");
  service.mutable_spec()->set_type("ClusterIP");
  ASSERT_TRUE(cluster_.api.Update(service));
  Run();
  EXPECT_EQ(Get("a").metadata().finalizers_size(), 0);
  EXPECT_EQ(Ingress("a"), "");
  EXPECT_EQ(Ingress("b"), "192.0.2.1 ");
}

TEST_F(LoadBalancerTest, RestartKeepsWhatWasGivenAndSettlesDoubles) {
  Make({"192.0.2.1-192.0.2.9"});
  for (const char* name : {"older", "younger"}) {
    corev1::Service service = Put(name);
    SetIngress(service, {*IpAddress::Parse("192.0.2.5")});
    cluster_.fake->Put(service);
  }
  Put("new");
  Run();
  EXPECT_EQ(Ingress("older"), "192.0.2.5 ");
  EXPECT_NE(Ingress("younger"), "192.0.2.5 ");
  EXPECT_NE(Ingress("younger"), Ingress("new"));
}

TEST_F(LoadBalancerTest, OthersClassIsLeftAlone) {
  Make({"192.0.2.1"});
  corev1::Service service = Put("a");
  service.mutable_spec()->set_load_balancer_class("example.com/other");
  service.mutable_metadata()->add_finalizers(kLoadBalancerFinalizer);
  cluster_.fake->Put(service);
  Run();
  EXPECT_EQ(Ingress("a"), "");
  EXPECT_EQ(Get("a").metadata().finalizers_size(), 1);
}

TEST_F(LoadBalancerTest, ClassOfThePoolWithoutOne) {
  Make();
  corev1::Service service = Put("a");
  service.mutable_spec()->set_load_balancer_class(kAddressPoolClass);
  cluster_.fake->Put(service);
  Run();
  EXPECT_EQ(Ingress("a"), "");
  EXPECT_EQ(cluster_.Events().back(),
            "SyncLoadBalancerFailed: Error syncing load balancer: there is no address pool: "
            "--load-balancer-addresses");
}

// Killed before any of its writes: the next one gives each Service one address, no two the same.
TEST(LoadBalancerKillTest, EndsTheSameAfterAnyWrite) {
  int writes = 0;
  for (bool killed = true; killed; ++writes) {
    SCOPED_TRACE(writes);
    TestCluster cluster;
    const AddressPool pool = *AddressPool::Parse({"192.0.2.1-192.0.2.3"});
    for (const char* name : {"a", "b", "c"}) {
      corev1::Service service;
      service.mutable_metadata()->set_name(name);
      service.mutable_metadata()->set_namespace_("default");
      service.mutable_spec()->set_type("LoadBalancer");
      cluster.fake->Put(service);
    }
    auto& first = cluster.Make<LoadBalancerController>(pool);
    killed = false;
    int left = writes;
    cluster.fake->SetInterceptor(
        [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (request.method == "GET" || (!killed && left-- > 0)) return std::nullopt;
          killed = true;
          return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
        });
    cluster.Start();
    cluster.Drain({&first});
    cluster.Stop();
    cluster.fake->SetInterceptor(nullptr);
    auto& second = cluster.Make<LoadBalancerController>(pool);
    cluster.Start();
    cluster.Drain({&second});
    std::set<std::string> given;
    for (const corev1::Service& service : cluster.List<corev1::Service>()) {
      ASSERT_EQ(service.status().load_balancer().ingress_size(), 1);
      given.insert(service.status().load_balancer().ingress(0).ip());
    }
    EXPECT_EQ(given.size(), 3u);
  }
  EXPECT_GT(writes, 3);  // one a Service
}

}  // namespace
}  // namespace keelson::controllers
