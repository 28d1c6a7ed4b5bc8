// IPVS with open connections: when another dataplane takes over, when endpoints are removed, and when other
// tools change virtual servers. Needs a kernel with IPVS: the VM of tests/vm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lib/base/clock.h"
#include "lib/base/pause.h"
#include "lib/base/testing/eventually.h"
#include "lib/netlink/ipvs.h"
#include "proxy/ipvs/kernel.h"
#include "proxy/model/service_change_tracker.h"
#include "tests/netns/crowd.h"

namespace keelson::netns {
namespace {

class IpvsSwitchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Result<> possible = Possible("ipvs"); !possible) GTEST_SKIP() << possible.error().message();
    if (Result<> may = Crowd::MayOpen(1100); !may) GTEST_SKIP() << may.error().message();
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
  // A proxy that has started but not written yet.
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
  void Join(Crowd& crowd, int count) {
    Result<> joined = crowd.Join(count);
    ASSERT_TRUE(joined) << joined.error().message();
  }
  // The connections in IPVS.
  uint64_t Carried() {
    uint64_t out = 0;
    EXPECT_TRUE(world_->node().Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
      KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> servers, ipvs.Servers());
      for (const netlink::FoundServer& server : servers) {
        KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> destinations,
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
      KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
      auto [ip, port] = block_.Destination("cluster", true);
      KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> found,
                               ipvs.Destinations({6, ip, port}));
      for (const netlink::FoundDestination& one : found) {
        out.push_back(one.destination.ip.ToString() + "*" + std::to_string(one.destination.weight));
      }
      return {};
    }));
    std::sort(out.begin(), out.end());
    return out;
  }

  std::unique_ptr<ServiceWorld> world_;
  ServiceBlock block_{.number = 1,
                      .name = "web",
                      .protocol = "tcp",
                      .flags = {"nodeport", "external"},
                      .endpoints = {},
                      .cases = {}};
  proxy::ServiceChangeTracker map_{proxy::NodeTopology{"here", "a"}};
};

TEST_F(IpvsSwitchTest, AThousandConnectionsLiveThroughBothTransitions) {
  auto nftables = Plane("nftables");
  Write(*nftables);
  Crowd first(*world_, block_), second(*world_, block_), third(*world_, block_);
  Join(first, 500);
  ASSERT_EQ(Carried(), 0u);

  auto ipvs = Plane("ipvs");
  Write(*ipvs);
  EXPECT_EQ(nftables->Retire().value_or(false), true);
  EXPECT_EQ(first.Dead(), 0);
  Join(second, 500);
  EXPECT_EQ(Carried(), 500u);
  EXPECT_EQ(first.Dead() + second.Dead(), 0);

  nftables = Plane("nftables");
  Write(*nftables);
  for (int restarts = 0; restarts < 3; ++restarts) {
    auto left = ipvs->Retire();
    ASSERT_TRUE(left) << left.error().message();
    EXPECT_FALSE(*left);
    EXPECT_EQ(first.Dead() + second.Dead(), 0) << restarts;
    ipvs = Plane("ipvs");
  }
  Join(third, 30);
  EXPECT_EQ(Carried(), 500u);
  // Other ports of the Service's address, which is this node's for now, are as closed as ever.
  Question other = To("outside", "cluster");
  other.port = kEndpointPort;
  EXPECT_EQ(world_->Check("outside", other, {"refused"}, PacketCase::kAny, false), "");

  second.Reset();
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(ipvs->Retire());
    return Carried() == 0;
  }));
  EXPECT_EQ(first.Dead() + third.Dead(), 0);
  // Of the third ones this node's own came from the very addresses, which stay for them; and no longer,
  // though connection tracking takes them for open for a day.
  EXPECT_FALSE(ipvs->Retire().value_or(true));
  third.Vanish();
  EXPECT_TRUE(ipvs->Retire().value_or(false));
  EXPECT_EQ(first.Dead(), 0);
}

// As an administrator with ipvsadm and ip: the kernel sends no event.
TEST_F(IpvsSwitchTest, WhatOthersHaveRemovedIsBackWithinAPeriod) {
  auto plane = Plane("ipvs");
  Write(*plane);
  Crowd crowd(*world_, block_);
  Join(crowd, 15);
  auto in_node = [&](auto body) {
    Result<> done = world_->node().Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<proxy::ipvs::Kernel> kernel, proxy::ipvs::OpenKernel());
      return body(*kernel);
    });
    ASSERT_TRUE(done) << done.error().message();
  };
  const auto [ip, port] = block_.Destination("cluster", true);
  const netlink::ServerAddress address{6, ip, port};
  const std::vector<std::pair<const char*, std::function<Result<>(proxy::ipvs::Kernel&)>>> harms = {
      {"ipvsadm -C",
       [](proxy::ipvs::Kernel&) -> Result<> {
         KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
         return ipvs.Flush();
       }},
      {"ipvsadm -d",
       [&](proxy::ipvs::Kernel& kernel) -> Result<> {
         KEELSON_RETURN_IF_ERROR(
             kernel.DeleteDestination(address, EndpointAddress("pod1", true), kEndpointPort));
         return {};
       }},
      {"ip address del", [&](proxy::ipvs::Kernel& kernel) { return kernel.Unbind(address.ip); }},
  };
  for (const auto& [what, harm] : harms) {
    in_node(harm);
    Write(*plane);
    plane->dataplane().OnPeriod();
    Write(*plane);
    EXPECT_THAT(Destinations(), ::testing::SizeIs(3)) << what;
    EXPECT_EQ(world_->Check("outside", To("outside", "cluster"), {"pod1", "pod2", "remote"},
                            PacketCase::kMasq, false),
              "")
        << what;
  }
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
  EXPECT_TRUE(open[0].Echoes());
  EXPECT_EQ(world_->Check("outside", To("outside", "cluster"), {"pod1"}, PacketCase::kMasq, false), "");
  plane = Plane("ipvs");  // killed
  Write(*plane);
  EXPECT_THAT(Destinations(), ::testing::Contains("10.1.0.2*0"));
  EXPECT_TRUE(open[0].Echoes());
  open[0].Reset();
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(plane->Sync());
    return Destinations() == std::vector<std::string>{"10.1.0.1*1"};
  }));
}

}  // namespace
}  // namespace keelson::netns
