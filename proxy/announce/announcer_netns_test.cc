// Two nodes and a client on one link, with the rules that kube-proxy writes: which node's server answers at a
// load balancer's address says who speaks for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "lib/base/testing/eventually.h"
#include "lib/client/testing/fake_api.h"
#include "lib/linux/netns.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/neigh.h"
#include "proxy/announce/announcer.h"
#include "proxy/nftables/dataplane.h"
#include "proxy/nftables/testing/packet_fixture.h"

namespace keelson::proxy {
namespace {

using namespace std::chrono_literals;
using coordinationv1::Lease;

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }
const IpAddress kV4 = Ip("192.0.2.100"), kV6 = Ip("fd00::100");
constexpr uint16_t kPort = 80, kServerPort = 8080;

// The way to the API server, which can be cut.
class Cable : public client::Transport {
 public:
  explicit Cable(std::shared_ptr<client::FakeApi> api) : api_(std::move(api)) {}
  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    if (cut_) return Error(Code::kUnavailable, "the cable is cut");
    return api_->Do(request, timeout, stop);
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    if (cut_) return Error(Code::kUnavailable, "the cable is cut");
    return api_->Open(request, stop);
  }
  void Cut(bool cut) { cut_ = cut; }

 private:
  std::shared_ptr<client::FakeApi> api_;
  std::atomic<bool> cut_{false};
};

Result<linux::NetNs> Host(netlink::Socket& link, int bridge, int number) {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs host, linux::NetNs::Make());
  // Looking for duplicates of link-local addresses takes two seconds, during which the address receives nothing.
  KEELSON_RETURN_IF_ERROR(
      host.Run([] { return linux::WriteSysctl("net/ipv6/conf/default/accept_dad", "0"); }));
  const std::string n = std::to_string(number);
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(link, {.name = "port" + n, .master = bridge, .up = true},
                                              {.name = "eth0", .netns_fd = host.fd()}, 0));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket inside, netlink::Socket::OpenIn(host));
  for (const char* name : {"lo", "eth0"}) {
    KEELSON_ASSIGN_OR_RETURN(netlink::Link one, netlink::GetLink(inside, name));
    KEELSON_RETURN_IF_ERROR(netlink::SetUp(inside, one.index));
    if (std::string(name) == "lo") continue;
    for (const std::string& address : {"192.0.2." + n + "/24", "fd00::" + n + "/64"}) {
      KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, one.index, *IpPrefix::Parse(address)));
    }
  }
  return host;
}

// What a node has, but for what announces: that comes and goes.
struct Node {
  Node(linux::NetNs where, int number)
      : netns(std::move(where)),
        name("n" + std::to_string(number)),
        v4("192.0.2." + std::to_string(number)),
        v6("fd00::" + std::to_string(number)),
        server4(name, netns, Ip(v4), kServerPort),
        server6(name, netns, Ip(v6), kServerPort) {}

  Result<> Program(bool is_v4) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel(netns));
    nftables::Dataplane plane(std::move(kernel), nftables::Options{.v4 = is_v4});
    ResolvedPort port;
    port.service = {.name = "default/web:", .cluster_ip = Ip(is_v4 ? "10.96.0.9" : "fd96::9"), .port = kPort};
    port.service.load_balancer_ips = {is_v4 ? kV4 : kV6};
    port.cluster = {{.ip = Ip(is_v4 ? v4 : v6), .port = kServerPort, .local = true}};
    port.has_endpoints = true;
    plane.plan().SetService("default/web", {port});
    KEELSON_RETURN_IF_ERROR(plane.Sync());
    return {};
  }

  linux::NetNs netns;
  std::string name, v4, v6;
  EchoServer server4, server6;
};

// A kube-proxy's part that announces.
class Program {
 public:
  Program(Node& node, const std::shared_ptr<client::FakeApi>& api,
          std::chrono::milliseconds lease = std::chrono::seconds(1))
      : cable(std::make_shared<Cable>(api)),
        leases_(client::RestClient(cable)),
        announcer({.node_name = node.name,
                   .addresses = *AddressPool::Parse({"192.0.2.100-192.0.2.110", "fd00::100-fd00::110"}),
                   .times = {.lease = lease, .renew = 300ms, .retry = 100ms, .spread = 100ms}},
                  client::RestClient(cable, 500ms), leases_, responder) {
    corev1::Node object;
    object.mutable_metadata()->set_name(node.name);
    corev1::NodeAddress& address = *object.mutable_status()->add_addresses();
    address.set_type("InternalIP");
    address.set_address(node.v4);
    announcer.OnNode(&object);
    announcer.MarkSynced();
    threads_.emplace_back([this, &node](std::stop_token stop) {
      EXPECT_TRUE(node.netns.Run([&] { return responder.Run(stop); }));
    });
    threads_.emplace_back(
        [this](std::stop_token stop) { (void)leases_.Run(stop, [this] { announcer.MarkLeasesSynced(); }); });
    threads_.emplace_back([this](std::stop_token stop) { (void)announcer.Run(stop); });
  }
  ~Program() {
    while (!threads_.empty()) threads_.pop_back();  // the announcer first
  }

  std::shared_ptr<Cable> cable;
  Responder responder;

 private:
  client::InformerFactory leases_;

 public:
  Announcer announcer;

 private:
  std::vector<std::jthread> threads_;
};

class AnnouncerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto built = [&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(linux::NetNs hub, linux::NetNs::Make());
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket link, netlink::Socket::OpenIn(hub));
      KEELSON_RETURN_IF_ERROR(netlink::CreateBridge(link, "hub", 0, std::nullopt));
      KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, netlink::GetLink(link, "hub"));
      KEELSON_RETURN_IF_ERROR(netlink::SetUp(link, bridge.index));
      KEELSON_ASSIGN_OR_RETURN(linux::NetNs client, Host(link, bridge.index, 9));
      for (int number : {1, 2}) {
        KEELSON_ASSIGN_OR_RETURN(linux::NetNs host, Host(link, bridge.index, number));
        nodes_.push_back(std::make_unique<Node>(std::move(host), number));
        KEELSON_RETURN_IF_ERROR(nodes_.back()->Program(true));
        KEELSON_RETURN_IF_ERROR(nodes_.back()->Program(false));
      }
      hub_.emplace(std::move(hub));
      client_.emplace(std::move(client));
      return {};
    }();
    ASSERT_TRUE(built) << built.error().message();
    for (auto& node : nodes_) programs_.push_back(std::make_unique<Program>(*node, api_));
  }

  corev1::Service Web(bool local = false) {
    corev1::Service service;
    service.mutable_metadata()->set_name("web");
    service.mutable_metadata()->set_namespace_("default");
    service.mutable_metadata()->set_uid("uid-of-web");
    service.mutable_spec()->set_type("LoadBalancer");
    service.mutable_spec()->set_external_traffic_policy(local ? "Local" : "Cluster");
    for (const IpAddress& ip : {kV4, kV6}) {
      service.mutable_status()->mutable_load_balancer()->add_ingress()->set_ip(ip.ToString());
    }
    return service;
  }
  void Tell(const corev1::Service* service) {
    for (auto& program : programs_) {
      if (program) program->announcer.OnService("default/web", service);
    }
  }
  void TellEndpoints(const std::string& node) {
    discoveryv1::EndpointSlice slice;
    slice.mutable_metadata()->set_namespace_("default");
    (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "web";
    slice.add_endpoints()->set_node_name(node);
    for (auto& program : programs_) program->announcer.OnSlice("default/web-1", &slice);
  }
  // Who answers a client there; empty: nobody.
  std::string Answers(const IpAddress& ip) {
    auto connection = Connection::Open(*client_, ip, kPort, 1000ms);
    return connection ? connection->server() : "";
  }
  // The same node at both addresses, `other` than this one; which.
  std::string Speaker(const std::string& other = "") {
    std::string who;
    EXPECT_TRUE(Eventually([&] {  // a connection that is begun too early takes a second
      return std::any_of(programs_.begin(), programs_.end(),
                         [](const auto& program) { return program && !program->responder.Spoken().empty(); });
    }));
    EXPECT_TRUE(Eventually([&] {
      who = Answers(kV4);
      return !who.empty() && who != other && Answers(kV6) == who;
    })) << "still "
        << who;
    return who;
  }
  std::unique_ptr<Program>& ProgramOf(const std::string& node) { return programs_[node == "n1" ? 0 : 1]; }
  static std::string Other(const std::string& node) { return node == "n1" ? "n2" : "n1"; }
  // What the client has learned about `ip`, without asking again.
  std::string ClientsNeighbor(const IpAddress& ip) {
    auto socket = netlink::Socket::OpenIn(*client_);
    auto eth0 = netlink::GetLink(*socket, "eth0");
    auto neighbors = netlink::ListNeighbors(*socket, eth0->index);
    for (const netlink::Neighbor& one : *neighbors) {
      if (one.address == ip) return one.mac.ToString();
    }
    return "";
  }
  std::string MacOf(const std::string& node) {
    auto socket = netlink::Socket::OpenIn(nodes_[node == "n1" ? 0 : 1]->netns);
    return netlink::GetLink(*socket, "eth0")->mac.ToString();
  }
  std::vector<Lease> Leases() { return *client::RestClient(api_).List<Lease>("kube-system"); }

  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>();
  std::optional<linux::NetNs> hub_, client_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Program>> programs_;
};

TEST_F(AnnouncerTest, OneSpeaksAndAnotherTakesOver) {
  EXPECT_EQ(Answers(kV4), "");
  const corev1::Service web = Web();
  Tell(&web);
  const std::string first = Speaker(), second = Other(first);
  ASSERT_EQ(Leases().size(), 1u);
  EXPECT_EQ(Leases()[0].spec().holder_identity(), first);
  EXPECT_EQ(ClientsNeighbor(kV4), MacOf(first));

  // Killed: it can give up nothing.
  ProgramOf(first)->cable->Cut(true);
  ProgramOf(first).reset();
  EXPECT_TRUE(Eventually([&] {
    return ProgramOf(second)->responder.Spoken() == std::set<IpAddress>{kV4, kV6};
  }));
  // The client is told, without having asked.
  EXPECT_TRUE(Eventually([&] { return ClientsNeighbor(kV4) == MacOf(second); }));
  EXPECT_TRUE(Eventually([&] { return ClientsNeighbor(kV6) == MacOf(second); }));
  EXPECT_EQ(Speaker(first), second);
}

TEST_F(AnnouncerTest, WhoEndsInOrderHandsOverAtOnce) {
  const corev1::Service web = Web();
  Tell(&web);
  const std::string first = Speaker();
  ProgramOf(first).reset();
  EXPECT_EQ(Leases()[0].spec().holder_identity() == first, false);
  EXPECT_EQ(Speaker(first), Other(first));
}

TEST_F(AnnouncerTest, RestartedHolderGoesOn) {
  // Nobody is to take over before it is back, however busy the machine is.
  const auto start = [&](size_t i) {
    programs_[i].reset();
    programs_[i] = std::make_unique<Program>(*nodes_[i], api_, 60s);
  };
  for (size_t i : {0, 1}) start(i);
  const corev1::Service web = Web();
  Tell(&web);
  const std::string first = Speaker();
  ProgramOf(first)->cable->Cut(true);
  ProgramOf(first).reset();
  start(first == "n1" ? 0 : 1);
  ProgramOf(first)->announcer.OnService("default/web", &web);
  EXPECT_TRUE(Eventually([&] { return ProgramOf(first)->responder.Spoken().contains(kV4); }));
  EXPECT_EQ(Leases()[0].spec().lease_transitions(), 0);
}

TEST_F(AnnouncerTest, WithoutTheApiTheHolderGoesOn) {
  const corev1::Service web = Web();
  Tell(&web);
  const std::string first = Speaker();
  for (auto& program : programs_) program->cable->Cut(true);
  api_->EndWatches();
  // Long past the Lease's end.
  const auto end = std::chrono::steady_clock::now() + 1500ms;
  while (std::chrono::steady_clock::now() < end) ASSERT_EQ(Answers(kV4), first);
  EXPECT_EQ(Speaker(), first);
}

TEST_F(AnnouncerTest, WhoIsCutOffYieldsToItsSuccessor) {
  const corev1::Service web = Web();
  Tell(&web);
  const std::string first = Speaker(), second = Other(first);
  ProgramOf(first)->cable->Cut(true);
  EXPECT_TRUE(Eventually([&] { return ProgramOf(second)->responder.Spoken().contains(kV4); }));
  EXPECT_TRUE(Eventually([&] { return ProgramOf(first)->responder.Spoken().empty(); }));
  EXPECT_EQ(Speaker(first), second);
}

TEST_F(AnnouncerTest, PolicyLocalSpeaksWhereEndpointsAre) {
  const corev1::Service web = Web(true);
  TellEndpoints("n2");
  Tell(&web);
  EXPECT_EQ(Speaker(), "n2");
  TellEndpoints("n1");
  EXPECT_EQ(Speaker("n2"), "n1");
}

TEST_F(AnnouncerTest, ServiceThatGoesTakesItsLeaseAlong) {
  const corev1::Service web = Web();
  Tell(&web);
  Speaker();
  Tell(nullptr);
  EXPECT_TRUE(Eventually([&] { return Leases().empty(); }));
  for (auto& program : programs_) EXPECT_TRUE(program->responder.Spoken().empty());
}

TEST_F(AnnouncerTest, OnlyAddressesOfThePool) {
  corev1::Service web = Web();
  web.mutable_status()->mutable_load_balancer()->mutable_ingress(0)->set_ip("192.0.2.50");
  Tell(&web);
  EXPECT_TRUE(Eventually([&] {
    return std::any_of(programs_.begin(), programs_.end(), [](const auto& program) {
      return program->responder.Spoken() == std::set<IpAddress>{kV6};
    });
  }));
}

TEST(MayAnnounceTest, Nodes) {
  corev1::Node node;
  EXPECT_TRUE(MayAnnounce(node));
  corev1::Node excluded = node, cut_off = node, leaving = node;
  (*excluded.mutable_metadata()->mutable_labels())["node.kubernetes.io/exclude-from-external-load-balancers"];
  EXPECT_FALSE(MayAnnounce(excluded));
  cut_off.mutable_status()->add_conditions()->set_type("NetworkUnavailable");
  cut_off.mutable_status()->mutable_conditions(0)->set_status("True");
  EXPECT_FALSE(MayAnnounce(cut_off));
  leaving.mutable_spec()->add_taints()->set_key("ToBeDeletedByClusterAutoscaler");
  EXPECT_FALSE(MayAnnounce(leaving));
}

}  // namespace
}  // namespace keelson::proxy
