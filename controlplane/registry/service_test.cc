// Services in the registry: addresses, node ports, and the repair of interrupted writes.
#include "controlplane/registry/ip_allocator.h"
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::registry {
namespace {

namespace networkingv1 = api::networking::v1;

class ServiceTest : public RegistryTest {
 protected:
  const ResourceInfo& Addresses() { return Row<networkingv1::IPAddress>(); }
  bool Held(const std::string& ip) { return (*plane_)->Get(Addresses(), "", ip).has_value(); }
  size_t CountAddresses() {
    Result<ObjectList> list = (*plane_)->List(Addresses(), "", {});
    return list ? list->items.size() : 0;
  }
  void Restart(std::vector<std::string> cidrs) {
    plane_.reset();
    Config config;
    config.service_cidrs = std::move(cidrs);
    plane_ = std::make_unique<Plane>(*etcd_, config);
  }
  Result<corev1::Service> Change(const std::string& name, const std::string& merge) {
    return Patch<corev1::Service>(name, PatchType::kMerge, merge);
  }
  // Writes past the registry: what a crash, a user or another server may leave.
  template <typename T>
  void Store(const T& object) {
    storage::Conflict conflict;
    ASSERT_TRUE((*plane_)->store().Put(Row<T>(), api::KeyOf(object), object, 0, {}, conflict, {}));
  }
  template <typename T>
  void Erase(const std::string& key) {
    auto found = (*plane_)->store().Get(Row<T>(), key, "", {});
    ASSERT_TRUE(found && *found);
    storage::Conflict conflict;
    ASSERT_TRUE((*plane_)->store().Delete(Row<T>(), key, (*found)->revision(), conflict, {}));
  }
  static networkingv1::IPAddress Address(const std::string& ip, const std::string& service,
                                         bool ours = true) {
    networkingv1::IPAddress address;
    address.mutable_metadata()->set_name(ip);
    if (ours) (*address.mutable_metadata()->mutable_labels())[kManagedByLabel] = kIpManager;
    auto& parent = *address.mutable_spec()->mutable_parent_ref();
    parent.set_resource("services");
    parent.set_namespace_("default");
    parent.set_name(service);
    return address;
  }
  std::vector<std::string> Events() {
    std::vector<std::string> out;
    Result<ObjectList> list = (*plane_)->List(Row<corev1::Event>(), "default", {});
    if (!list) return out;
    for (const ObjectPtr& object : list->items) {
      auto message = object->Decode();
      const auto& event = static_cast<const corev1::Event&>(*message);
      out.push_back(event.reason() + " " + event.message());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

TEST_F(ServiceTest, AddressObjectsSayWhoHoldsThem) {
  auto made = Create(Service("a"));
  ASSERT_TRUE(made) << made.error().message();
  auto object = (*plane_)->Get(Addresses(), "", made->spec().cluster_ip());
  ASSERT_TRUE(object);
  auto message = (*object)->Decode();
  const auto& address = static_cast<const networkingv1::IPAddress&>(*message);
  EXPECT_EQ(address.metadata().labels().at("ipaddress.kubernetes.io/ip-family"), "IPv4");
  EXPECT_EQ(address.metadata().labels().at("ipaddress.kubernetes.io/managed-by"), "ipallocator.k8s.io");
  EXPECT_EQ(address.spec().parent_ref().resource(), "services");
  EXPECT_EQ(address.spec().parent_ref().namespace_(), "default");
  EXPECT_EQ(address.spec().parent_ref().name(), "a");
}

TEST_F(ServiceTest, AnotherServiceOfTheSameNameKeepsItsAddress) {
  corev1::Service fixed = Service("a");
  fixed.mutable_spec()->set_cluster_ip("10.96.0.50");
  ASSERT_TRUE(Create(fixed));
  auto again = Create(fixed);
  ASSERT_FALSE(again);
  EXPECT_EQ(
      again.error().message(),
      "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.0.50\"]: failed to allocate IP "
      "10.96.0.50: provided IP is already allocated");
  EXPECT_TRUE(Held("10.96.0.50"));
  auto exists = Create(Service("a"));
  ASSERT_FALSE(exists);
  EXPECT_EQ(exists.error().message(), "services \"a\" already exists");
  EXPECT_EQ(CountAddresses(), 1u);
}

TEST_F(ServiceTest, OnlyAddressesOfTheRangesAreHandedOut) {
  corev1::Service service = Service("a");
  service.mutable_spec()->set_cluster_ip("192.168.1.1");
  auto out = Create(service);
  ASSERT_FALSE(out);
  EXPECT_EQ(
      out.error().message(),
      "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"192.168.1.1\"]: failed to allocate IP "
      "192.168.1.1: the provided network does not match the current range");
  networkingv1::ServiceCIDR more;
  more.mutable_metadata()->set_name("more");
  more.mutable_spec()->add_cidrs("192.168.1.0/30");
  ASSERT_TRUE(Create(more, ""));
  ASSERT_TRUE(Create(service));
  service.mutable_metadata()->set_name("network");
  service.mutable_spec()->set_cluster_ip("192.168.1.0");
  auto network = Create(service);
  ASSERT_FALSE(network);
  EXPECT_NE(network.error().message().find("the provided network does not match the current range"),
            std::string::npos)
      << network.error().message();
  WriteOptions dry;
  dry.dry_run = true;
  network = Create(service, "default", dry);
  ASSERT_FALSE(network);
  EXPECT_NE(
      network.error().message().find("the provided IP (192.168.1.0) is not in the valid range. The range "
                                     "of valid IPs is 10.96.0.0/12"),
      std::string::npos)
      << network.error().message();
}

TEST_F(ServiceTest, ExhaustedRangesSaySoAndMoreRangesHelp) {
  Restart({"10.200.0.0/30"});  // the default ServiceCIDR keeps its range
  Erase<networkingv1::ServiceCIDR>("kubernetes");
  Restart({"10.200.0.0/30"});
  ASSERT_TRUE(Create(Service("a")));
  ASSERT_TRUE(Create(Service("b")));
  auto full = Create(Service("c"));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message(), "Internal error occurred: failed to allocate a serviceIP: range is full");
  networkingv1::ServiceCIDR more;
  more.mutable_metadata()->set_name("more");
  more.mutable_spec()->add_cidrs("10.201.0.0/28");
  ASSERT_TRUE(Create(more, ""));
  auto fits = Create(Service("c"));
  ASSERT_TRUE(fits) << fits.error().message();
  EXPECT_EQ(fits->spec().cluster_ip().substr(0, 7), "10.201.");
}

TEST_F(ServiceTest, BecomesDualStackAndBack) {
  Restart({"10.96.0.0/12", "fd00:96::/112"});
  auto cidr = Get<networkingv1::ServiceCIDR>("kubernetes", "");
  ASSERT_TRUE(cidr);
  ASSERT_EQ(cidr->spec().cidrs_size(), 2) << "a cluster that becomes dual stack gets the second range";
  auto made = Create(Service("a"));
  ASSERT_TRUE(made) << made.error().message();
  ASSERT_EQ(made->spec().cluster_ips_size(), 1);
  auto two = Change("a", R"({"spec":{"ipFamilyPolicy":"RequireDualStack"}})");
  ASSERT_TRUE(two) << two.error().message();
  ASSERT_EQ(two->spec().cluster_ips_size(), 2);
  EXPECT_EQ(two->spec().cluster_ips(0), made->spec().cluster_ip());
  const std::string second = two->spec().cluster_ips(1);
  EXPECT_EQ(second.substr(0, 8), "fd00:96:");
  EXPECT_TRUE(Held(second));
  auto refused = Change("a", R"({"spec":{"ipFamilies":["IPv4"]}})");
  EXPECT_FALSE(refused);
  auto one = Change("a", R"({"spec":{"ipFamilyPolicy":"SingleStack"}})");
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->spec().cluster_ips_size(), 1);
  EXPECT_EQ(one->spec().ip_families_size(), 1);
  EXPECT_FALSE(Held(second));
  EXPECT_TRUE(Held(made->spec().cluster_ip()));
}

TEST_F(ServiceTest, TypesComeAndGo) {
  auto made = Create(Service("a"));
  ASSERT_TRUE(made);
  const std::string ip = made->spec().cluster_ip();
  auto node_port = Change("a", R"({"spec":{"type":"NodePort"}})");
  ASSERT_TRUE(node_port) << node_port.error().message();
  const int port = node_port->spec().ports(0).node_port();
  EXPECT_GE(port, 30000);
  EXPECT_EQ(node_port->spec().external_traffic_policy(), "Cluster");
  // Values that the client leaves out are kept.
  corev1::Service bare = Service("a");
  bare.mutable_metadata()->set_namespace_("default");
  bare.mutable_spec()->set_type("NodePort");
  auto kept = Update(bare);
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(kept->spec().ports(0).node_port(), port);
  EXPECT_EQ(kept->spec().cluster_ip(), ip);

  auto balanced = Change("a", R"({"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local"}})");
  ASSERT_TRUE(balanced) << balanced.error().message();
  EXPECT_EQ(balanced->spec().ports(0).node_port(), port);
  const int health = balanced->spec().health_check_node_port();
  EXPECT_GE(health, 30000);
  EXPECT_TRUE(balanced->spec().allocate_load_balancer_node_ports());

  auto back = Change("a", R"({"spec":{"type":"ClusterIP"}})");
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->spec().ports(0).node_port(), 0);
  EXPECT_EQ(back->spec().health_check_node_port(), 0);
  EXPECT_FALSE(back->spec().has_allocate_load_balancer_node_ports());
  EXPECT_EQ(back->spec().external_traffic_policy(), "");
  corev1::Service taker = Service("taker");
  taker.mutable_spec()->set_type("NodePort");
  taker.mutable_spec()->mutable_ports(0)->set_node_port(port);
  auto taken = Create(taker);
  ASSERT_TRUE(taken) << "the node port is free again: " << taken.error().message();

  auto name = Change("a", R"({"spec":{"type":"ExternalName","externalName":"example.com"}})");
  ASSERT_TRUE(name) << name.error().message();
  EXPECT_EQ(name->spec().cluster_ip(), "");
  EXPECT_EQ(name->spec().ip_families_size(), 0);
  EXPECT_FALSE(name->spec().has_ip_family_policy());
  EXPECT_FALSE(Held(ip));
  auto again = Change("a", R"({"spec":{"type":"NodePort","externalName":null}})");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_NE(again->spec().cluster_ip(), "");
  EXPECT_NE(again->spec().ports(0).node_port(), 0);
}

TEST_F(ServiceTest, BalancersMayDoWithoutNodePorts) {
  corev1::Service service = Service("a");
  service.mutable_spec()->set_type("LoadBalancer");
  service.mutable_spec()->set_allocate_load_balancer_node_ports(false);
  auto without = Create(service);
  ASSERT_TRUE(without) << without.error().message();
  EXPECT_EQ(without->spec().ports(0).node_port(), 0);
  service.mutable_metadata()->set_name("b");
  service.mutable_spec()->mutable_ports(0)->set_node_port(30123);
  auto named = Create(service);
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->spec().ports(0).node_port(), 30123);
}

TEST_F(ServiceTest, ProtocolsOfOnePortShareItsNodePort) {
  corev1::Service service = Service("a");
  service.mutable_spec()->set_type("NodePort");
  service.mutable_spec()->mutable_ports(0)->set_name("tcp");
  corev1::ServicePort& udp = *service.mutable_spec()->add_ports();
  udp.set_name("udp");
  udp.set_port(80);
  udp.set_protocol("UDP");
  auto made = Create(service);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->spec().ports(0).node_port(), made->spec().ports(1).node_port());
}

TEST_F(ServiceTest, RefusesPortsInUpstreamsWords) {
  corev1::Service service = Service("a");
  service.mutable_spec()->set_type("NodePort");
  service.mutable_spec()->mutable_ports(0)->set_node_port(80);
  auto out = Create(service);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message(),
            "Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in "
            "the valid "
            "range. The range of valid ports is 30000-32767");
  service.mutable_spec()->mutable_ports(0)->set_node_port(30100);
  ASSERT_TRUE(Create(service));
  corev1::Service balanced = Service("b");
  balanced.mutable_spec()->set_type("LoadBalancer");
  balanced.mutable_spec()->set_external_traffic_policy("Local");
  balanced.mutable_spec()->set_health_check_node_port(30100);
  auto taken = Create(balanced);
  ASSERT_FALSE(taken);
  EXPECT_EQ(
      taken.error().message(),
      "Internal error occurred: failed to allocate requested HealthCheck NodePort 30100: provided port is "
      "already allocated");
  EXPECT_EQ(CountAddresses(), 1u) << "the failed Service's address is given back";
}

TEST_F(ServiceTest, DryRunsLeaveNoTrace) {
  WriteOptions dry;
  dry.dry_run = true;
  corev1::Service service = Service("a");
  service.mutable_spec()->set_type("NodePort");
  service.mutable_spec()->mutable_ports(0)->set_node_port(30200);
  auto shown = Create(service, "default", dry);
  ASSERT_TRUE(shown) << shown.error().message();
  EXPECT_NE(shown->spec().cluster_ip(), "");
  EXPECT_EQ(CountAddresses(), 0u);
  ASSERT_TRUE(Create(service)) << "the node port is still free";
  auto update = Patch<corev1::Service>("a", PatchType::kMerge,
                                       R"({"spec":{"type":"ExternalName","externalName":"x.y"}})", dry);
  ASSERT_TRUE(update) << update.error().message();
  EXPECT_EQ(CountAddresses(), 1u);
  service.mutable_metadata()->set_name("b");
  EXPECT_FALSE(Create(service)) << "the node port is still taken";
}

TEST_F(ServiceTest, MendsWhatACrashLeft) {
  corev1::Service fixed = Service("held");
  fixed.mutable_spec()->set_cluster_ip("10.96.0.60");
  ASSERT_TRUE(Create(fixed));
  corev1::Service ported = Service("ported");
  ported.mutable_spec()->set_type("NodePort");
  ported.mutable_spec()->mutable_ports(0)->set_node_port(30300);
  ASSERT_TRUE(Create(ported));
  // Killed after the address and before the Service; or after deleting the Service and before its address.
  Store(Address("10.96.0.70", "never-came"));
  // Addresses made by a user stay.
  Store(Address("10.96.0.71", "never-came", false));
  // Lost, and overwritten.
  Erase<networkingv1::IPAddress>("10.96.0.60");
  ASSERT_TRUE(Create(Service("wrong")));
  const std::string wrong = Get<corev1::Service>("wrong")->spec().cluster_ip();
  Erase<networkingv1::IPAddress>(wrong);
  Store(Address(wrong, "somebody-else"));

  Restart({"10.96.0.0/12"});
  EXPECT_FALSE(Held("10.96.0.70"));
  EXPECT_TRUE(Held("10.96.0.71"));
  EXPECT_TRUE(Held("10.96.0.60"));
  auto mended = Get<networkingv1::IPAddress>(wrong, "");
  ASSERT_TRUE(mended);
  EXPECT_EQ(mended->spec().parent_ref().name(), "wrong");
  EXPECT_EQ(Events(), (std::vector<std::string>{
                          "ClusterIPNotAllocated Cluster IP [IPv4]: 10.96.0.60 is not allocated; repairing",
                          "ClusterIPNotAllocated the ClusterIP [IPv4]: " + wrong +
                              " for Service default/wrong has a wrong reference; repairing",
                          "IPAddressNotAllocated IPAddress: 10.96.0.70 for Service default/never-came "
                          "appears to have leaked: "
                          "cleaning up"}));
  corev1::Service rival = Service("rival");
  rival.mutable_spec()->set_type("NodePort");
  rival.mutable_spec()->mutable_ports(0)->set_node_port(30300);
  EXPECT_FALSE(Create(rival)) << "node ports are learned again";
}

TEST_F(ServiceTest, SaysWhatItCannotMend) {
  corev1::Service service = Service("out");
  service.mutable_metadata()->set_namespace_("default");
  service.mutable_metadata()->set_uid("u1");
  service.mutable_spec()->set_type("ClusterIP");
  service.mutable_spec()->set_cluster_ip("192.168.9.9");
  service.mutable_spec()->add_cluster_ips("192.168.9.9");
  Store(service);
  ASSERT_TRUE(Create(Service("first")));
  const std::string ip = Get<corev1::Service>("first")->spec().cluster_ip();
  service.mutable_metadata()->set_name("second");
  service.mutable_spec()->set_cluster_ip(ip);
  service.mutable_spec()->set_cluster_ips(0, ip);
  Store(service);
  Restart({"10.96.0.0/12"});
  EXPECT_EQ(Events(),
            (std::vector<std::string>{"ClusterIPAlreadyAllocated Cluster IP [IPv4]:" + ip +
                                          " was assigned to multiple services; please recreate service",
                                      "ClusterIPOutOfRange Cluster IP [IPv4]: 192.168.9.9 is not within any "
                                      "configured Service CIDR; please "
                                      "recreate service"}));
}

TEST_F(ServiceTest, AddressesThatVanishComeBackAtOnce) {
  auto made = Create(Service("a"));
  ASSERT_TRUE(made);
  const std::string ip = made->spec().cluster_ip();
  std::jthread maintain([&](std::stop_token stop) { (*plane_)->Maintain(stop); });
  // The watch behind it starts within the first round; deleting again is harmless.
  for (int i = 0; i < 200; ++i) {
    if (Held(ip)) (void)Delete(Addresses(), ip, {}, "");
    std::vector<std::string> events = Events();
    if (!events.empty()) {
      EXPECT_EQ(events[0], "ClusterIPNotAllocated Cluster IP [IPv4]: " + ip + " is not allocated; repairing");
      break;
    }
    ASSERT_LT(i, 199) << "nobody noticed";
  }
}

TEST_F(ServiceTest, WarnsOfWhatIsIgnored) {
  corev1::Service headless = Service("a");
  headless.mutable_spec()->set_cluster_ip("None");
  headless.mutable_spec()->set_session_affinity("ClientIP");
  Result<Written> written = (*plane_)->Create(Row<corev1::Service>(), "default", "",
                                              std::make_unique<corev1::Service>(headless), {});
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->warnings,
            std::vector<std::string>{"spec.SessionAffinity is ignored for headless services"});
}

}  // namespace
}  // namespace keelson::registry
