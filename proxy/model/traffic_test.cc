#include "proxy/model/traffic.h"

#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

// One endpoint here (10.1.0.1), one elsewhere (10.1.1.1), unless said otherwise.
ResolvedPort Port(const std::string& what) {
  ResolvedPort out;
  auto has = [&](char c) { return what.find(c) != std::string::npos; };
  out.service.cluster_ip = Ip("10.96.0.1");
  out.service.internal_local = has('i');
  out.service.external_local = has('e');
  out.service.node_port = 30080;
  out.service.load_balancer_ips = {Ip("192.0.2.1")};
  if (has('r')) out.service.source_ranges = {*IpPrefix::Parse("203.0.113.0/24")};
  Backend here{Ip("10.1.0.1"), 80, true}, there{Ip("10.1.1.1"), 80, false};
  out.has_endpoints = !has('0');
  if (!out.has_endpoints) return out;
  out.cluster = has('R') ? std::vector{there} : std::vector{here, there};
  if ((has('i') || has('e')) && !has('R')) out.local = {here};
  return out;
}

struct Case {
  const char* what;  // i, e: policies Local; r: source ranges; 0: no endpoint; R: remote endpoints only
  Frontend frontend;
  Origin origin;
  const char* expected;  // "all", "local", "refused", "dropped"; "+m": masqueraded
};

constexpr Frontend kVip = Frontend::kClusterIp, kPort = Frontend::kNodePort, kLb = Frontend::kLoadBalancerIp;
constexpr Origin kPod = Origin::kPod, kNode = Origin::kNode, kOut = Origin::kExternal;

const Case kCases[] = {
    {"", kVip, kPod, "all"},
    {"", kVip, kNode, "all+m"},
    {"", kVip, kOut, "all+m"},
    {"i", kVip, kPod, "local"},
    {"i", kVip, kOut, "local+m"},
    {"iR", kVip, kPod, "dropped"},
    {"iR", kPort, kOut, "all+m"},
    {"0", kVip, kPod, "refused"},
    {"i0", kVip, kPod, "refused"},
    {"", kPort, kPod, "all+m"},
    {"", kPort, kNode, "all+m"},
    {"", kPort, kOut, "all+m"},
    {"e", kPort, kPod, "all"},
    {"e", kPort, kNode, "all+m"},
    {"e", kPort, kOut, "local"},
    {"eR", kPort, kPod, "all"},
    {"eR", kPort, kNode, "all+m"},
    {"eR", kPort, kOut, "dropped"},
    {"eR", kVip, kOut, "all+m"},
    {"e0", kPort, kOut, "refused"},
    {"", Frontend::kExternalIp, kOut, "all+m"},
    {"e", Frontend::kExternalIp, kOut, "local"},
    {"r", kLb, kOut, "dropped"},
    {"r", kPort, kOut, "all+m"},
    {"r", Frontend::kExternalIp, kOut, "all+m"},
    {"r0", kLb, kOut, "dropped"},
};

TEST(Decide, Table) {
  for (const Case& c : kCases) {
    ResolvedPort port = Port(c.what);
    Decision got = Decide(port, c.frontend, c.origin, Ip("172.30.0.2"));
    std::string text = got.verdict == TrafficVerdict::kRefused   ? "refused"
                       : got.verdict == TrafficVerdict::kDropped ? "dropped"
                       : got.endpoints == &port.local            ? "local"
                                                                 : "all";
    if (got.masquerade) text += "+m";
    EXPECT_EQ(text, c.expected) << c.what << " entry " << static_cast<int>(c.frontend) << " origin "
                                << static_cast<int>(c.origin);
  }
}

TEST(Decide, SourceRangesLetTheirOwnIn) {
  ResolvedPort port = Port("r");
  EXPECT_EQ(Decide(port, kLb, kOut, Ip("203.0.113.9")).verdict, TrafficVerdict::kServed);
}

TEST(Decide, WithoutDetectionPodsAreOutside) {
  ResolvedPort port = Port("e");
  EXPECT_EQ(Decide(port, kPort, kPod, Ip("10.1.0.9"), {.detects_pods = false}).endpoints, &port.local);
  EXPECT_FALSE(Decide(port, kVip, kOut, Ip("172.30.0.2"), {.detects_pods = false}).masquerade);
  EXPECT_TRUE(Decide(port, kVip, kPod, Ip("10.1.0.9"), {.masquerade_all = true}).masquerade);
}

TEST(AdmittedSources, ANodeInsideTheRangesMayUseItsOwnAddress) {
  ServicePort service = Port("r").service;
  EXPECT_EQ(AdmittedSources(service, {Ip("172.30.0.1")}).size(), 1u);
  std::vector<IpPrefix> with_node = AdmittedSources(service, {Ip("172.30.0.1"), Ip("203.0.113.7")});
  ASSERT_EQ(with_node.size(), 2u);
  EXPECT_EQ(with_node[1].ToString(), "192.0.2.1/32");
}

}  // namespace
}  // namespace keelson::proxy
