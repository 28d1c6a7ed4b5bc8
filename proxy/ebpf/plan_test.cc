#include "proxy/ebpf/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "lib/dataplane/ebpf_codec.h"

namespace keelson::proxy::ebpf {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

ResolvedPort Web() {
  ResolvedPort out{.service = {.name = "ns/web:http", .cluster_ip = Ip("10.96.0.1"), .port = 80}};
  out.has_endpoints = true;
  out.cluster = {{Ip("10.1.0.1"), 8080, true}, {Ip("10.2.0.1"), 8080, false}};
  return out;
}

// What maps hold, in words.
class Kernel {
 public:
  void Apply(const Changes& changes) {
    for (int map = 0; map < kMapCount; ++map) {
      for (const auto& [key, value] : changes.maps[map].put) maps_[map][key] = value;
      for (const std::string& key : changes.maps[map].gone) EXPECT_EQ(maps_[map].erase(key), 1u);
    }
  }
  std::vector<std::pair<std::string, std::string>> Found(MapId map) const {
    return {maps_[map].begin(), maps_[map].end()};
  }
  size_t size(MapId map) const { return maps_[map].size(); }
  // "pods node endpoints", with the answers' first letters; empty: nothing.
  std::string Said(const IpAddress* ip, uint8_t protocol, uint16_t port) const {
    auto found =
        maps_[kServices].find(ServiceKeyBytes({ip ? std::optional(*ip) : std::nullopt, protocol, port}));
    if (found == maps_[kServices].end()) return "";
    dataplane::ServiceEntry service;
    EXPECT_EQ(found->second.size(), sizeof service);
    std::memcpy(&service, found->second.data(), sizeof service);
    const char* letters = "-SRD";
    return {letters[service.pods], letters[service.node], static_cast<char>('0' + service.endpoints)};
  }
  // Of slot 0 on.
  std::vector<std::string> Endpoints(const IpAddress* ip, uint8_t protocol, uint16_t port) const {
    std::vector<std::string> out;
    for (uint32_t slot = 0;; ++slot) {
      std::string key = ServiceKeyBytes({ip ? std::optional(*ip) : std::nullopt, protocol, port});
      key.append(reinterpret_cast<const char*>(&slot), sizeof slot);
      auto found = maps_[kEndpoints].find(key);
      if (found == maps_[kEndpoints].end()) return out;
      const bool v4 = found->second.substr(0, 12) == ServiceKeyBytes({kV4, 0, 0}).substr(0, 12);
      out.push_back(IpAddress::FromBytes(found->second.substr(v4 ? 12 : 0, v4 ? 4 : 16)).ToString());
    }
  }

 private:
  const IpAddress kV4 = Ip("0.0.0.0");
  std::map<std::string, std::string> maps_[kMapCount];
};

struct AnswerCase {
  const char* what;
  std::function<void(ResolvedPort&)> make;
  Options options;
  const char *cluster_ip, *external, *load_balancer, *node_port;
};

TEST(EbpfContribution, AnswersFollowTheModel) {
  auto none = [](ResolvedPort& port) {
    port.cluster.clear();
    port.has_endpoints = false;
  };
  const AnswerCase cases[] = {
      {"policies Cluster: pods would be masqueraded", [](ResolvedPort&) {}, {}, "SS2", "-S2", "-S2", "-S2"},
      {"external policy Local: short cut past it",
       [](ResolvedPort& port) {
         port.service.external_local = true;
         port.local = {port.cluster[0]};
       },
       {},
       "SS2",
       "SS2",
       "SS2",
       "SS2"},
      {"internal policy Local",
       [](ResolvedPort& port) {
         port.service.internal_local = true;
         port.local = {port.cluster[0]};
       },
       {},
       "SS1",
       "-S2",
       "-S2",
       "-S2"},
      {"internal policy Local, endpoints elsewhere",
       [](ResolvedPort& port) { port.service.internal_local = true; },
       {},
       "DD0",
       "-S2",
       "-S2",
       "-S2"},
      {"nobody", none, {}, "RR0", "RR0", "RR0", "RR0"},
      {"source ranges",
       [](ResolvedPort& port) { port.service.source_ranges = {*IpPrefix::Parse("203.0.113.0/24")}; },
       {},
       "SS2",
       "-S2",
       "",
       "-S2"},
      {"all is masqueraded", [](ResolvedPort&) {}, {.masquerade_all = true}, "-S2", "-S2", "-S2", "-S2"},
      {"pods are not told from others",
       [](ResolvedPort& port) {
         port.service.external_local = true;
         port.local = {port.cluster[0]};
       },
       {.detects_pods = false},
       "SS2",
       "-S2",
       "-S2",
       "-S2"},
  };
  for (const AnswerCase& c : cases) {
    ResolvedPort port = Web();
    port.service.external_ips = {Ip("192.0.2.1")};
    port.service.load_balancer_ips = {Ip("198.51.100.1")};
    port.service.node_port = 30080;
    c.make(port);
    Plan plan(c.options);
    plan.StartOver();
    plan.SetService("ns/web", {port});
    Kernel kernel;
    kernel.Apply(plan.TakeChanges());
    EXPECT_EQ(kernel.Said(&port.service.cluster_ip, kTcp, 80), c.cluster_ip) << c.what;
    EXPECT_EQ(kernel.Said(&port.service.external_ips[0], kTcp, 80), c.external) << c.what;
    EXPECT_EQ(kernel.Said(&port.service.load_balancer_ips[0], kTcp, 80), c.load_balancer) << c.what;
    EXPECT_EQ(kernel.Said(nullptr, kTcp, 30080), c.node_port) << c.what;
    EXPECT_EQ(kernel.Said(&port.service.cluster_ip, 0, 0), "RR0") << c.what;
  }
}

TEST(EbpfContribution, OfSctpOnlyTheAddressIsKnown) {
  ResolvedPort port = Web();
  port.service.protocol = kSctp;
  Plan plan({});
  plan.StartOver();
  plan.SetService("ns/web", {port});
  Kernel kernel;
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.size(kServices), 1u);
  EXPECT_EQ(kernel.size(kEndpoints), 0u);
}

TEST(EbpfPlan, SlotsStayAndHaveNoHoles) {
  Plan plan({});
  plan.StartOver();
  Kernel kernel;
  ResolvedPort port = Web();
  port.cluster.push_back({Ip("10.3.0.1"), 8080, false});
  const IpAddress* vip = &port.service.cluster_ip;
  plan.SetService("ns/web", {port});
  kernel.Apply(plan.TakeChanges());
  EXPECT_THAT(kernel.Endpoints(vip, kTcp, 80), ElementsAre("10.1.0.1", "10.2.0.1", "10.3.0.1"));
  port.cluster.erase(port.cluster.begin());
  plan.SetService("ns/web", {port});
  Changes changes = plan.TakeChanges();
  EXPECT_EQ(changes.maps[kEndpoints].put.size(), 1u);
  EXPECT_EQ(changes.maps[kEndpoints].gone.size(), 1u);
  EXPECT_EQ(changes.maps[kServices].put.size(), 1u);
  EXPECT_EQ(changes.size(), 3u);
  kernel.Apply(changes);
  EXPECT_THAT(kernel.Endpoints(vip, kTcp, 80), ElementsAre("10.3.0.1", "10.2.0.1"));
  EXPECT_EQ(plan.TakeChanges().size(), 0u);
}

TEST(EbpfPlan, MembersAreOfServicesWhoseClientsStay) {
  Plan plan({});
  plan.StartOver();
  Kernel kernel;
  ResolvedPort port = Web();
  port.service.affinity = std::chrono::seconds(10);
  plan.SetService("ns/web", {port});
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.size(kMembers), 2u);
  port.service.affinity = std::chrono::seconds(0);
  plan.SetService("ns/web", {port});
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.size(kMembers), 0u);
  port.service.protocol = kUdp;
  plan.SetService("ns/web", {port});
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.size(kMembers), 2u);
}

TEST(EbpfPlan, TheFirstToClaimAnAddressHasIt) {
  Plan plan({});
  plan.StartOver();
  Kernel kernel;
  const IpAddress shared = Ip("192.0.2.1");
  ResolvedPort first = Web(), second = Web();
  second.service.cluster_ip = Ip("10.96.0.2");
  second.cluster.resize(1);
  first.service.external_ips = second.service.external_ips = {shared};
  plan.SetService("ns/first", {first});
  plan.SetService("ns/second", {second});
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.Said(&shared, kTcp, 80), "-S2");
  plan.SetService("ns/first", {});
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.Said(&shared, kTcp, 80), "-S1");
  EXPECT_THAT(kernel.Endpoints(&shared, kTcp, 80), ElementsAre("10.1.0.1"));
  plan.SetService("ns/second", {});
  kernel.Apply(plan.TakeChanges());
  for (int map = 0; map < kMapCount; ++map) EXPECT_EQ(kernel.size(static_cast<MapId>(map)), 0u);
}

TEST(EbpfPlan, NodePortsAnswerOnAddressesOfTheFamily) {
  Plan plan({.v4 = false});
  plan.StartOver();
  Kernel kernel;
  plan.SetNodeIps({Ip("172.30.0.1"), Ip("fd30::1")});
  kernel.Apply(plan.TakeChanges());
  ASSERT_EQ(kernel.size(kNodePortIps), 1u);
  EXPECT_EQ(kernel.Found(kNodePortIps)[0].first, Ip("fd30::1").bytes());
  plan.SetNodeIps({Ip("fd30::2")});
  kernel.Apply(plan.TakeChanges());
  EXPECT_EQ(kernel.Found(kNodePortIps)[0].first, Ip("fd30::2").bytes());
}

TEST(EbpfPlan, ComparesWithWhatIsThere) {
  Plan plan({});
  plan.StartOver();
  Kernel kernel;
  plan.SetService("ns/web", {Web()});
  kernel.Apply(plan.TakeChanges());
  ResolvedPort other = Web();
  other.service.cluster_ip = Ip("10.96.0.2");
  Plan next({});
  next.SetService("ns/other", {other});
  EXPECT_EQ(next.TakeChanges().size(), 0u) << "nothing is noted before the first comparison";
  next.StartOver();
  Changes difference;
  for (int map = 0; map < kMapCount; ++map) {
    auto id = static_cast<MapId>(map);
    difference.maps[map] = next.Difference(id, kernel.Found(id));
  }
  EXPECT_EQ(difference.size(), 8u);  // two slots and two Services go, and as many come
  kernel.Apply(difference);
  EXPECT_EQ(next.TakeChanges().size(), 0u) << "what was to come has come";
  for (int map = 0; map < kMapCount; ++map) {
    auto id = static_cast<MapId>(map);
    EXPECT_THAT(next.Difference(id, kernel.Found(id)).put, IsEmpty());
  }
  EXPECT_EQ(kernel.Said(&other.service.cluster_ip, kTcp, 80), "SS2");
}

}  // namespace
}  // namespace keelson::proxy::ebpf
