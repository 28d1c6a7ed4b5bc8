// From one dataplane to another below open connections, and endpoints that leave gracefully. Needs a kernel
// that has both: the VM of tests/vm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>

#include "lib/base/clock.h"
#include "lib/base/pause.h"
#include "lib/netlink/ipvs.h"
#include "proxy/model/service_map.h"
#include "tests/netns/service_world.h"

namespace keelson::netns {
namespace {

constexpr const char* kClients[] = {"pod1", "pod2", "node", "outside", "stranger"};
constexpr const char* kEntries[] = {"cluster", "nodeport", "external"};

class IpvsSwitchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Result<> possible = Possible("ipvs"); !possible) GTEST_SKIP() << possible.error().message();
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < 4096) {
      GTEST_SKIP() << "too few files allowed";
    }
    auto world = ServiceWorld::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    world_ = std::move(*world);
    corev1::Service service = block_.Service();
    map_.UpdateService("default/web", &service);
    SetEndpoints({"pod1", "pod2", "remote"});
    auto possible = Start("ipvs");
    if (!possible && possible.error().Is(Code::kUnimplemented)) {
      GTEST_SKIP() << possible.error().message();
    }
    ASSERT_TRUE(possible) << possible.error().message();
  }
  void SetEndpoints(const std::vector<std::string>& endpoints) {
    block_.endpoints = endpoints;
    discoveryv1::EndpointSlice slice = block_.Slice(true);
    map_.UpdateSlice("default/web-4", &slice);
  }
  // A proxy that has started, and written nothing yet.
  Result<std::unique_ptr<ServicePlane>> Start(const std::string& mode) {
    return world_->Start({.mode = mode, .pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
  }
  std::unique_ptr<ServicePlane> Plane(const std::string& mode) {
    auto plane = Start(mode);
    EXPECT_TRUE(plane) << plane.error().message();
    return plane ? std::move(*plane) : nullptr;
  }
  void Write(ServicePlane& plane) {
    plane.SetService("default/web", map_.Resolve("default/web", true));
    auto synced = plane.Sync();
    ASSERT_TRUE(synced) << synced.error().message();
  }
  Question To(const char* client, const char* entry) {
    Question question = world_->From(client, true);
    std::tie(question.to, question.port) = block_.Destination(entry, true);
    return question;
  }
  std::vector<Conversation> OpenMany(int count) {
    std::vector<Conversation> out;
    for (int i = 0; i < count; ++i) {
      const char* client = kClients[i % 5];
      auto one = Conversation::Open(world_->Place(client), To(client, kEntries[i % 3]));
      EXPECT_TRUE(one) << i << ": " << one.error().message();
      if (one) out.push_back(std::move(*one));
    }
    return out;
  }
  static int Dead(std::vector<Conversation>& open) {
    int dead = 0;
    for (Conversation& conversation : open) dead += !conversation.Echoes();
    return dead;
  }
  // Connections that IPVS carries.
  uint64_t Carried() {
    uint64_t out = 0;
    EXPECT_TRUE(world_->node().Run([&]() -> Result<> {
      ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
      ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> servers, ipvs.Servers());
      for (const netlink::FoundServer& server : servers) {
        ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> destinations,
                         ipvs.Destinations(server.server.address));
        for (const netlink::FoundDestination& one : destinations) out += one.active + one.inactive;
      }
      return {};
    }));
    return out;
  }
  // Destinations of the cluster IP, as "10.1.0.1*WEIGHT".
  std::vector<std::string> Destinations() {
    std::vector<std::string> out;
    EXPECT_TRUE(world_->node().Run([&]() -> Result<> {
      ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
      auto [ip, port] = block_.Destination("cluster", true);
      ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> found, ipvs.Destinations({6, ip, port}));
      for (const netlink::FoundDestination& one : found) {
        out.push_back(one.destination.ip.ToString() + "*" + std::to_string(one.destination.weight));
      }
      return {};
    }));
    std::sort(out.begin(), out.end());
    return out;
  }
  // The kernel tells nobody when a connection has ended.
  static bool Eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 240; ++i) {
      if (holds()) return true;
      (void)Pause(Clock::Real(), std::chrono::milliseconds(500), std::stop_token());
    }
    return false;
  }

  std::unique_ptr<ServiceWorld> world_;
  ServiceBlock block_{.number = 1,
                      .name = "web",
                      .protocol = "tcp",
                      .flags = {"nodeport", "external"},
                      .endpoints = {},
                      .cases = {}};
  proxy::ServiceMap map_{proxy::NodePlace{"here", "a"}};
};

TEST_F(IpvsSwitchTest, AThousandConnectionsLiveThroughBothTransitions) {
  auto nftables = Plane("nftables");
  Write(*nftables);
  std::vector<Conversation> first = OpenMany(500);
  ASSERT_EQ(Carried(), 0u);

  auto ipvs = Plane("ipvs");
  Write(*ipvs);
  EXPECT_EQ(nftables->Retire().value_or(false), true);
  EXPECT_EQ(Dead(first), 0);
  std::vector<Conversation> second = OpenMany(500);
  EXPECT_EQ(Carried(), 500u);
  EXPECT_EQ(Dead(first) + Dead(second), 0);

  nftables = Plane("nftables");
  Write(*nftables);
  for (int restarts = 0; restarts < 3; ++restarts) {
    auto left = ipvs->Retire();
    ASSERT_TRUE(left) << left.error().message();
    EXPECT_FALSE(*left);
    EXPECT_EQ(Dead(first) + Dead(second), 0) << restarts;
    ipvs = Plane("ipvs");
  }
  std::vector<Conversation> third = OpenMany(30);
  EXPECT_EQ(Carried(), 500u);
  // Other ports of the Service's address, which is this node's for now, are as closed as ever.
  Question other = To("outside", "cluster");
  other.port = kEndpointPort;
  EXPECT_EQ(world_->Check("outside", other, {"refused"}, PacketCase::kAny, false), "");

  for (Conversation& conversation : second) conversation.Reset();
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(ipvs->Retire());
    return Carried() == 0;
  }));
  EXPECT_EQ(Dead(first) + Dead(third), 0);
  // Of the third ones this node's own came from the very addresses, which stay for them.
  for (Conversation& conversation : third) conversation.Reset();
  EXPECT_TRUE(Eventually([&] { return ipvs->Retire().value_or(false); }));
  EXPECT_EQ(Dead(first), 0);
}

TEST_F(IpvsSwitchTest, EndpointsLeaveWhenTheirConnectionsHaveEnded) {
  SetEndpoints({"pod1", "pod2"});
  auto plane = Plane("ipvs");
  Write(*plane);
  std::vector<Conversation> open;
  while (open.empty()) {
    auto one = Conversation::Open(world_->Place("outside"), To("outside", "cluster"));
    ASSERT_TRUE(one) << one.error().message();
    if (one->answer().server == "pod2") open.push_back(std::move(*one));
  }
  SetEndpoints({"pod1"});
  Write(*plane);
  EXPECT_EQ(Dead(open), 0);
  EXPECT_EQ(world_->Check("outside", To("outside", "cluster"), {"pod1"}, PacketCase::kMasq, false), "");
  plane = Plane("ipvs");  // killed
  Write(*plane);
  EXPECT_THAT(Destinations(), ::testing::Contains("10.1.0.2*0"));
  EXPECT_EQ(Dead(open), 0);
  open[0].Reset();
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(plane->Sync());
    return Destinations() == std::vector<std::string>{"10.1.0.1*1"};
  }));
}

}  // namespace
}  // namespace keelson::netns
