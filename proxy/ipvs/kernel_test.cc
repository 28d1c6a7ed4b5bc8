// What every Kernel answers: the fake, and where there is IPVS (the VM of tests/vm) the machine's own.
#include "proxy/ipvs/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "lib/linux/netns.h"
#include "lib/netlink/link.h"
#include "proxy/ipvs/testing/fake_kernel.h"

namespace keelson::proxy::ipvs {
namespace {

using netlink::ServerAddress;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

class IpvsKernelTest : public ::testing::TestWithParam<bool> {
 protected:
  void Run(const std::function<void(Kernel&)>& body) {
    if (!GetParam()) {
      FakeState state;
      FakeKernel fake(state);
      return body(fake);
    }
    auto netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    auto done = netns->Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
      KEELSON_ASSIGN_OR_RETURN(netlink::Link lo, netlink::GetLink(socket, "lo"));
      KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, lo.index));
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, OpenKernel());
      body(*kernel);
      return {};
    });
    if (!done && done.error().Is(Code::kUnimplemented)) GTEST_SKIP() << done.error().message();
    EXPECT_TRUE(done) << done.error().message();
  }
  const ServerAddress address_{6, Ip("10.96.0.1"), 80};
  const netlink::Destination destination_{.ip = Ip("10.1.0.1"), .port = 8080};
};

INSTANTIATE_TEST_SUITE_P(Kernels, IpvsKernelTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "real" : "fake"; });

TEST_P(IpvsKernelTest, Servers) {
  Run([&](Kernel& kernel) {
    EXPECT_THAT(*kernel.Servers(), IsEmpty());
    netlink::VirtualServer server{.address = address_};
    EXPECT_FALSE(kernel.ChangeServer(server));
    EXPECT_FALSE(*kernel.DeleteServer(address_));
    EXPECT_TRUE(kernel.AddServer(server));
    EXPECT_EQ(kernel.AddServer(server).error().code(), Code::kAlreadyExists);
    server.affinity = std::chrono::seconds(60);
    EXPECT_TRUE(kernel.ChangeServer(server));
    auto found = kernel.Servers();
    ASSERT_THAT(*found, SizeIs(1));
    EXPECT_EQ(found->at(0).server, server);
    EXPECT_TRUE(*kernel.DeleteServer(address_));
    EXPECT_THAT(*kernel.Servers(), IsEmpty());
  });
}

TEST_P(IpvsKernelTest, Destinations) {
  Run([&](Kernel& kernel) {
    EXPECT_THAT(*kernel.Destinations(address_), IsEmpty());
    EXPECT_FALSE(kernel.AddDestination(address_, destination_));
    EXPECT_FALSE(*kernel.DeleteDestination(address_, destination_.ip, destination_.port));
    ASSERT_TRUE(kernel.AddServer({.address = address_}));
    EXPECT_EQ(kernel.ChangeDestination(address_, destination_).error().code(), Code::kNotFound);
    EXPECT_TRUE(kernel.AddDestination(address_, destination_));
    EXPECT_EQ(kernel.AddDestination(address_, destination_).error().code(), Code::kAlreadyExists);
    netlink::Destination drained = destination_;
    drained.weight = 0;
    EXPECT_TRUE(kernel.ChangeDestination(address_, drained));
    auto found = kernel.Destinations(address_);
    ASSERT_THAT(*found, SizeIs(1));
    EXPECT_EQ(found->at(0).destination, drained);
    EXPECT_TRUE(found->at(0).translates);
    EXPECT_TRUE(*kernel.DeleteDestination(address_, destination_.ip, destination_.port));
    EXPECT_FALSE(*kernel.DeleteDestination(address_, destination_.ip, destination_.port));
  });
}

TEST_P(IpvsKernelTest, ListsAllAtOnce) {
  Run([&](Kernel& kernel) {
    EXPECT_THAT(*kernel.List(), IsEmpty());
    const ServerAddress other{17, Ip("fd96::1"), 53};
    ASSERT_TRUE(kernel.AddServer({.address = address_, .affinity = std::chrono::seconds(60)}));
    ASSERT_TRUE(kernel.AddServer({.address = other}));
    ASSERT_TRUE(kernel.AddDestination(address_, destination_));
    ASSERT_TRUE(kernel.AddDestination(other, {.ip = Ip("fd01::1"), .port = 53, .weight = 0}));
    auto listed = kernel.List();
    ASSERT_TRUE(listed) << listed.error().message();
    ASSERT_THAT(*listed, SizeIs(2));
    for (const netlink::ListedServer& one : *listed) {
      const bool first = one.address == address_;
      EXPECT_TRUE(first || one.address == other);
      EXPECT_EQ(one.scheduler, "rr");
      EXPECT_EQ(one.sticky, first);
      ASSERT_THAT(one.destinations, SizeIs(1));
      EXPECT_TRUE(one.destinations[0].translates);
      EXPECT_EQ(one.destinations[0].destination,
                first ? destination_ : (netlink::Destination{Ip("fd01::1"), 53, 0}));
    }
  });
}

TEST_P(IpvsKernelTest, Addresses) {
  Run([&](Kernel& kernel) {
    EXPECT_THAT(*kernel.Bound(), IsEmpty());
    for (const char* ip : {"10.96.0.1", "fd96::1", "10.96.0.1"}) EXPECT_TRUE(kernel.Bind(Ip(ip))) << ip;
    EXPECT_THAT(*kernel.Bound(), UnorderedElementsAre(Ip("10.96.0.1"), Ip("fd96::1")));
    for (int i = 0; i < 2; ++i) {
      auto gone = kernel.Unbind(Ip("10.96.0.1"));
      EXPECT_TRUE(gone) << gone.error().message();
    }
    EXPECT_THAT(*kernel.Bound(), UnorderedElementsAre(Ip("fd96::1")));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(kernel.RemoveDevice());
    EXPECT_THAT(*kernel.Bound(), IsEmpty());
    EXPECT_TRUE(kernel.Bind(Ip("10.96.0.2")));
    EXPECT_THAT(*kernel.Bound(), UnorderedElementsAre(Ip("10.96.0.2")));
  });
}

}  // namespace
}  // namespace keelson::proxy::ipvs
