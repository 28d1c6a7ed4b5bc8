#include "proxy/ipvs/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::proxy::ipvs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

// A port of everything, with endpoints 10.1.0.1 (here) and 10.2.0.1.
ResolvedPort Port() {
  ResolvedPort out;
  out.service = {.name = "default/web:", .cluster_ip = Ip("10.96.0.1"), .port = 80, .node_port = 30080};
  out.service.external_ips = {Ip("192.0.2.1")};
  out.service.load_balancer_ips = {Ip("192.0.2.9")};
  out.cluster = {{Ip("10.1.0.1"), 8080, true}, {Ip("10.2.0.1"), 8080, false}};
  out.local = {{Ip("10.1.0.1"), 8080, true}};
  out.has_endpoints = true;
  return out;
}

// "TCP 10.96.0.1:80 -> 10.1.0.1 10.2.0.1", for all that TakeServers names.
std::vector<std::string> Changes(Plan& plan) {
  std::vector<std::string> out;
  for (const ServerAddress& address : plan.TakeServers()) {
    std::string line = address.ToString() + " ->";
    const Server* server = plan.Find(address);
    if (!server) line += " nothing";
    if (server && server->affinity.count() > 0) line += " sticky " + std::to_string(server->affinity.count());
    if (server) {
      for (const Target& target : server->targets) line += " " + target.ip.ToString();
    }
    out.push_back(line);
  }
  return out;
}

std::vector<std::string> Bound(Plan& plan) {
  std::vector<std::string> out;
  for (const IpAddress& ip : plan.TakeAddresses()) {
    out.push_back(ip.ToString() + (plan.Bound(ip) ? "" : " gone"));
  }
  return out;
}

struct Case {
  const char* name;
  void (*change)(ResolvedPort&);
  std::vector<std::string> servers;
};

class PlanTest : public ::testing::TestWithParam<Case> {};

TEST_P(PlanTest, ServersOfAPort) {
  Plan plan(true);
  plan.SetNodeIps({Ip("172.30.0.1"), Ip("fd30::1")});
  ResolvedPort port = Port();
  GetParam().change(port);
  plan.SetService("default/web", {port});
  EXPECT_EQ(Changes(plan), GetParam().servers);
  EXPECT_THAT(Bound(plan), ElementsAre("10.96.0.1", "192.0.2.1", "192.0.2.9"));
}

INSTANTIATE_TEST_SUITE_P(
    Ports, PlanTest,
    ::testing::Values(
        Case{"policy_cluster",
             [](ResolvedPort&) {},
             {"TCP 10.96.0.1:80 -> 10.1.0.1 10.2.0.1", "TCP 172.30.0.1:30080 -> 10.1.0.1 10.2.0.1",
              "TCP 192.0.2.1:80 -> 10.1.0.1 10.2.0.1", "TCP 192.0.2.9:80 -> 10.1.0.1 10.2.0.1"}},
        Case{"external_local",
             [](ResolvedPort& port) { port.service.external_local = true; },
             {"TCP 10.96.0.1:80 -> 10.1.0.1 10.2.0.1", "TCP 172.30.0.1:30080 -> 10.1.0.1",
              "TCP 192.0.2.1:80 -> 10.1.0.1", "TCP 192.0.2.9:80 -> 10.1.0.1"}},
        Case{"external_local_without_any_here",
             [](ResolvedPort& port) {
               port.service.external_local = true;
               port.local.clear();
             },
             {"TCP 10.96.0.1:80 -> 10.1.0.1 10.2.0.1"}},
        Case{"internal_local",
             [](ResolvedPort& port) {
               port.service.internal_local = true;
               port.service.node_port = 0;
               port.service.affinity = std::chrono::seconds(60);
             },
             {"TCP 10.96.0.1:80 -> sticky 60 10.1.0.1", "TCP 192.0.2.1:80 -> sticky 60 10.1.0.1 10.2.0.1",
              "TCP 192.0.2.9:80 -> sticky 60 10.1.0.1 10.2.0.1"}},
        // The rules refuse it.
        Case{"no_endpoints",
             [](ResolvedPort& port) {
               port.cluster.clear();
               port.local.clear();
               port.has_endpoints = false;
             },
             {}}),
    [](const auto& of) { return of.param.name; });

TEST(IpvsPlan, TellsOnlyWhatHasChanged) {
  Plan plan(true);
  plan.SetNodeIps({Ip("172.30.0.1")});
  ResolvedPort port = Port(), other = Port();
  other.service.name = "default/other:";
  other.service.cluster_ip = Ip("10.96.0.2");
  other.service.node_port = 0;
  other.service.external_ips = {Ip("192.0.2.1")};  // which web has
  other.service.load_balancer_ips.clear();
  other.cluster = {{Ip("10.1.0.7"), 1, true}};
  plan.SetService("default/web", {port});
  plan.SetService("default/other", {other});
  plan.TakeServers();
  plan.TakeAddresses();
  plan.SetService("default/web", {port});
  EXPECT_THAT(Changes(plan), IsEmpty());
  EXPECT_THAT(Bound(plan), IsEmpty());

  plan.SetNodeIps({Ip("172.30.0.1"), Ip("172.31.0.1")});
  EXPECT_THAT(Changes(plan), ElementsAre("TCP 172.31.0.1:30080 -> 10.1.0.1 10.2.0.1"));
  plan.SetNodeIps({Ip("172.31.0.1")});
  EXPECT_THAT(Changes(plan), ElementsAre("TCP 172.30.0.1:30080 -> nothing"));

  EXPECT_EQ(plan.OwnerOf({kTcp, Ip("192.0.2.1"), 80}), "default/web");
  EXPECT_EQ(plan.OwnerOf({kTcp, Ip("172.31.0.1"), 30080}), "default/web");
  plan.SetService("default/web", {});
  EXPECT_THAT(Changes(plan), ElementsAre("TCP 10.96.0.1:80 -> nothing", "TCP 172.31.0.1:30080 -> nothing",
                                         "TCP 192.0.2.1:80 -> 10.1.0.7", "TCP 192.0.2.9:80 -> nothing"));
  EXPECT_THAT(Bound(plan), ElementsAre("10.96.0.1 gone", "192.0.2.9 gone"));
  EXPECT_EQ(plan.OwnerOf({kTcp, Ip("192.0.2.1"), 80}), "default/other");

  plan.StartOver();
  EXPECT_THAT(Changes(plan), ElementsAre("TCP 10.96.0.2:80 -> 10.1.0.7", "TCP 192.0.2.1:80 -> 10.1.0.7"));
  EXPECT_THAT(Bound(plan), ElementsAre("10.96.0.2", "192.0.2.1"));
}

TEST(IpvsPlan, AnAddressOfTheMachineIsNotGivenToItOnceMore) {
  Plan plan(true);
  plan.SetOwnIps({Ip("192.0.2.1"), Ip("192.0.2.200")});
  plan.SetService("default/web", {Port()});
  EXPECT_THAT(Bound(plan), UnorderedElementsAre("10.96.0.1", "192.0.2.1 gone", "192.0.2.9"));
  EXPECT_NE(plan.Find({kTcp, Ip("192.0.2.1"), 80}), nullptr);
  plan.SetOwnIps({Ip("192.0.2.200")});
  EXPECT_THAT(Bound(plan), ElementsAre("192.0.2.1"));
  plan.SetOwnIps({Ip("192.0.2.9")});
  EXPECT_THAT(Bound(plan), ElementsAre("192.0.2.9 gone"));
}

}  // namespace
}  // namespace keelson::proxy::ipvs
