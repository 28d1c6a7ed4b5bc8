// Needs a kernel with IPVS and dummy interfaces: the VM of tests/vm.
#include "lib/netlink/ipvs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "lib/linux/netns.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"

namespace keelson::netlink {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Runs `body` with the IPVS table of a fresh namespace.
template <typename Body>
void InNamespace(Body body) {
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  auto done = netns->Run([&]() -> Result<> {
    // A namespace without any address does not accept an IPv4 /32.
    KEELSON_ASSIGN_OR_RETURN(Socket socket, Socket::Open());
    KEELSON_ASSIGN_OR_RETURN(Link lo, GetLink(socket, "lo"));
    KEELSON_RETURN_IF_ERROR(SetUp(socket, lo.index));
    KEELSON_ASSIGN_OR_RETURN(Ipvs ipvs, Ipvs::Open());
    return body(ipvs);
  });
  if (!done && done.error().Is(Code::kUnimplemented)) GTEST_SKIP() << done.error().message();
  EXPECT_TRUE(done) << done.error().message();
}

struct Addresses {
  const char *name, *server, *destination, *other;
};

class IpvsTest : public ::testing::TestWithParam<Addresses> {};

TEST_P(IpvsTest, WhatIsWrittenIsRead) {
  InNamespace([](Ipvs& ipvs) -> Result<> {
    const auto ip = [](const char* text) { return *IpAddress::Parse(text); };
    VirtualServer server{.address = {6, ip(GetParam().server), 80}};
    EXPECT_EQ(ipvs.Servers()->size(), 0u);
    KEELSON_RETURN_IF_ERROR(ipvs.AddServer(server));
    EXPECT_EQ(ipvs.AddServer(server).error().code(), Code::kAlreadyExists);
    KEELSON_RETURN_IF_ERROR(ipvs.AddServer({.address = {17, ip(GetParam().server), 80}, .scheduler = "sh"}));
    auto servers = ipvs.Servers();
    EXPECT_TRUE(servers);
    EXPECT_THAT(*servers, SizeIs(2));
    for (const FoundServer& found : *servers) {
      if (found.server.address.protocol == 6) {
        EXPECT_EQ(found.server, server);
      }
      EXPECT_EQ(found.stats.connections, 0u);
    }
    server.affinity = seconds(300);
    server.scheduler = "mh";
    server.scheduler_flags = kSchedulerFlag2;
    KEELSON_RETURN_IF_ERROR(ipvs.ChangeServer(server));
    EXPECT_TRUE(*ipvs.DeleteServer({17, server.address.ip, 80}));
    EXPECT_FALSE(*ipvs.DeleteServer({17, server.address.ip, 80}));
    servers = ipvs.Servers();
    EXPECT_THAT(*servers, SizeIs(1));
    EXPECT_EQ(servers->at(0).server, server);

    const Destination first{.ip = ip(GetParam().destination), .port = 8080},
        second{.ip = ip(GetParam().other), .port = 8081};
    KEELSON_RETURN_IF_ERROR(ipvs.AddDestination(server.address, first));
    EXPECT_EQ(ipvs.AddDestination(server.address, first).error().code(), Code::kAlreadyExists);
    KEELSON_RETURN_IF_ERROR(ipvs.AddDestination(server.address, second));
    KEELSON_RETURN_IF_ERROR(ipvs.ChangeDestination(server.address, {first.ip, first.port, 0}));
    auto found = ipvs.Destinations(server.address);
    EXPECT_THAT(*found, SizeIs(2));
    for (const FoundDestination& one : *found) {
      EXPECT_EQ(one.destination.weight, one.destination.ip == first.ip ? 0u : 1u);
      EXPECT_TRUE(one.translates);
      EXPECT_EQ(one.active + one.inactive, 0u);
    }
    EXPECT_TRUE(*ipvs.DeleteDestination(server.address, first.ip, first.port));
    EXPECT_FALSE(*ipvs.DeleteDestination(server.address, first.ip, first.port));
    found = ipvs.Destinations(server.address);
    EXPECT_THAT(*found, SizeIs(1));
    EXPECT_EQ(found->at(0).destination, second);
    EXPECT_THAT(*ipvs.Destinations({6, server.address.ip, 1}), SizeIs(0));
    KEELSON_RETURN_IF_ERROR(ipvs.Flush());
    EXPECT_THAT(*ipvs.Servers(), SizeIs(0));
    return {};
  });
}

INSTANTIATE_TEST_SUITE_P(Families, IpvsTest,
                         ::testing::Values(Addresses{"v4", "10.96.0.1", "10.1.0.1", "10.1.0.2"},
                                           Addresses{"v6", "fd96::1", "fd01::1", "fd01::2"}),
                         [](const auto& of) { return of.param.name; });

TEST(IpvsSchedulers, AllThatProxiesNameAreThere) {
  InNamespace([](Ipvs& ipvs) -> Result<> {
    uint16_t port = 1;
    for (const char* scheduler : {"rr", "wrr", "lc", "wlc", "sh", "mh", "sed", "nq", "dh"}) {
      KEELSON_RETURN_IF_ERROR(
          ipvs.AddServer({.address = {6, *IpAddress::Parse("10.96.0.1"), port++}, .scheduler = scheduler}));
    }
    Result<> unknown =
        ipvs.AddServer({.address = {6, *IpAddress::Parse("10.96.0.1"), port}, .scheduler = "fair"});
    EXPECT_EQ(unknown.error().code(), Code::kUnimplemented);
    EXPECT_THAT(unknown.error().message(), HasSubstr("load the module ip_vs_fair"));
    return {};
  });
}

TEST(IpvsTimeouts, ZeroLeavesATimeAsItIs) {
  InNamespace([](Ipvs& ipvs) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(netlink::IpvsTimeouts before, ipvs.Timeouts());
    KEELSON_RETURN_IF_ERROR(ipvs.SetTimeouts({.tcp = seconds(600), .udp = seconds(60)}));
    KEELSON_ASSIGN_OR_RETURN(netlink::IpvsTimeouts after, ipvs.Timeouts());
    EXPECT_EQ(after.tcp, seconds(600));
    EXPECT_EQ(after.tcp_fin, before.tcp_fin);
    EXPECT_EQ(after.udp, seconds(60));
    return {};
  });
}

TEST(IpvsDevice, ADummyHoldsAddressesWhileItIsDown) {
  InNamespace([](Ipvs&) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(Socket socket, Socket::Open());
    KEELSON_RETURN_IF_ERROR(CreateDummy(socket, "kube-ipvs0"));
    EXPECT_EQ(CreateDummy(socket, "kube-ipvs0").error().code(), Code::kAlreadyExists);
    KEELSON_ASSIGN_OR_RETURN(Link link, GetLink(socket, "kube-ipvs0"));
    EXPECT_EQ(link.kind, "dummy");
    EXPECT_FALSE(link.up);
    for (const char* text : {"10.96.0.1/32", "fd96::1/128"}) {
      KEELSON_RETURN_IF_ERROR(AddAddress(socket, link.index, *IpPrefix::Parse(text)));
    }
    EXPECT_THAT(*ListAddresses(socket, link.index), SizeIs(2));
    return {};
  });
}

}  // namespace
}  // namespace keelson::netlink
