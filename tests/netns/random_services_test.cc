// Random Services through the kernel, compared with the model; and connections that outlive proxies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "lib/netlink/conntrack.h"
#include "proxy/model/service_change_tracker.h"
#include "tests/netns/crowd.h"
#include "tests/netns/random_services.h"

namespace keelson::netns {
namespace {

using proxy::Decision;
using proxy::TrafficVerdict;

constexpr const char* kClients[] = {"pod1", "pod2", "node", "outside", "stranger"};
constexpr const char* kEntries[] = {"cluster", "external", "lb", "nodeport"};

std::vector<std::string> Words(const Decision& decision) {
  if (decision.verdict == TrafficVerdict::kRefused) return {"refused"};
  if (decision.verdict == TrafficVerdict::kDropped) return {"dropped"};
  std::vector<std::string> out;
  for (const proxy::Backend& backend : *decision.endpoints) {
    for (const char* name : {"pod1", "pod2", "remote"}) {
      if (backend.ip == EndpointAddress(name, true)) out.push_back(name);
    }
  }
  return out;
}

// Those that the node knows, which forgets them.
Result<std::vector<netlink::Flow>> TakeFlows(const linux::NetNs& node, uint8_t protocol) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenNetfilterIn(node));
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows, netlink::ListFlows(socket, true, protocol));
  for (const netlink::Flow& flow : flows) KEELSON_RETURN_IF_ERROR(netlink::DeleteFlow(socket, flow));
  return flows;
}

// Every mode has its parameter. Mode ipvs needs a kernel with IPVS: the VM of tests/vm.
class Modes : public ::testing::TestWithParam<const char*> {};
class Agreement : public Modes {};
INSTANTIATE_TEST_SUITE_P(Random, Modes, ::testing::Values("nftables", "ipvs", "ebpf"),
                         [](const auto& mode) { return std::string(mode.param); });
INSTANTIATE_TEST_SUITE_P(Random, Agreement, ::testing::Values("nftables", "ipvs", "ebpf", "direct"),
                         [](const auto& mode) { return std::string(mode.param); });

// "direct": of mode ebpf, past the rules where it can be.
PlaneOptions OptionsOf(const std::string& mode, std::vector<IpPrefix> pod_cidrs) {
  const bool direct = mode == "direct";
  return {.mode = direct ? "ebpf" : mode, .pod_cidrs = std::move(pod_cidrs), .direct = direct};
}

TEST_P(Agreement, KernelsAndModels) {
  if (Result<> possible = Possible(GetParam()); !possible) GTEST_SKIP() << possible.error().message();
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  auto plane = (*world)->Start(
      OptionsOf(GetParam(), {*IpPrefix::Parse("10.1.0.0/16"), *IpPrefix::Parse("10.2.0.0/16")}));
  if (!plane && plane.error().Is(Code::kUnimplemented)) GTEST_SKIP() << plane.error().message();
  ASSERT_TRUE(plane) << plane.error().message();
  const uint32_t seed = 20260101;
  RandomServices random(seed);
  proxy::ServiceChangeTracker map(proxy::NodeTopology{"here", "a"});
  // Later rounds change what earlier ones made: incremental updates are held to the model too.
  for (int round = 0; round < 24; ++round) {
    ServiceBlock block = random.Block(1 + round % 6);
    std::string key = "default/" + block.name;
    corev1::Service service = block.Service();
    discoveryv1::EndpointSlice slice = block.Slice(true);
    map.UpdateService(key, &service);
    map.UpdateSlice(key + "-4", &slice);
    std::vector<proxy::ResolvedPort> ports = map.Resolve(key, true);
    (*plane)->SetService(key, ports);
    // A reused source port would continue a flow of the previous round.
    ASSERT_TRUE(TakeFlows((*world)->node(), proxy::kUdp));
    auto synced = (*plane)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    for (const char* client : kClients) {
      for (const char* entry : kEntries) {
        if (std::string(entry) != "cluster" && !block.Has(entry)) continue;
        Decision decision =
            proxy::Decide(ports[0], *EntryOf(entry), OriginOf(client), ClientAddress(client, true));
        Question question = (*world)->From(client, true);
        question.protocol = block.Protocol();
        std::tie(question.to, question.port) = block.Destination(entry, true);
        PacketCase::Seen seen = decision.masquerade ? PacketCase::kMasq : PacketCase::kKeep;
        EXPECT_EQ((*world)->Check(client, question, Words(decision), seen, false), "")
            << "seed " << seed << ", round " << round << ": " << client << " " << entry;
      }
    }
  }
}

TEST_P(Modes, AThousandConnectionsOutliveProxiesAndEndpoints) {
  if (Result<> possible = Possible(GetParam()); !possible) GTEST_SKIP() << possible.error().message();
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  if (Result<> may = Crowd::MayOpen(1000); !may) GTEST_SKIP() << may.error().message();
  const PlaneOptions options = OptionsOf(GetParam(), {*IpPrefix::Parse("10.1.0.0/16")});
  ServiceBlock block{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport", "external"}};
  block.endpoints = {"pod1", "pod2", "remote"};
  proxy::ServiceChangeTracker map(proxy::NodeTopology{"here", "a"});
  corev1::Service service = block.Service();
  map.UpdateService("default/web", &service);
  auto start = [&](const std::vector<std::string>& endpoints) {
    block.endpoints = endpoints;
    discoveryv1::EndpointSlice slice = block.Slice(true);
    map.UpdateSlice("default/web-4", &slice);
    auto plane = (*world)->Start(options);
    if (!plane && plane.error().Is(Code::kUnimplemented)) GTEST_SKIP() << plane.error().message();
    ASSERT_TRUE(plane) << plane.error().message();
    (*plane)->SetService("default/web", map.Resolve("default/web", true));
    auto synced = (*plane)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
  };
  start({"pod1", "pod2", "remote"});
  if (IsSkipped()) return;
  Crowd crowd(**world, block);
  Result<> joined = crowd.Join(1000);
  ASSERT_TRUE(joined) << joined.error().message();
  // Each start follows a killed proxy; endpoints have changed meanwhile.
  for (const std::vector<std::string>& endpoints :
       {std::vector<std::string>{"pod1", "pod2", "remote"}, {"pod1"}, {}, {"pod2", "remote"}}) {
    start(endpoints);
    EXPECT_EQ(crowd.Dead(), 0) << endpoints.size() << " endpoints";
  }
}

// A Service with 5000 endpoints, all of them addresses of one pod: each is in the kernel, and many are
// selected.
TEST(LargeService, FiveThousandEndpointsAnswer) {
  constexpr int kEndpoints = 5000, kTries = 200;
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  auto run = [](const linux::NetNs& netns, const char* command) {
    return netns.Run([&]() -> Result<> {
      if (std::system(command) != 0) return Error(Code::kInternal, command);
      return {};
    });
  };
  ASSERT_TRUE(run((*world)->Place("pod1"), "ip route add local 10.1.64.0/18 dev lo"));
  ASSERT_TRUE(run((*world)->node(), "ip route add 10.1.64.0/18 via 10.1.0.1"));
  auto plane = (*world)->Start({.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
  ASSERT_TRUE(plane) << plane.error().message();
  proxy::ResolvedPort port;
  port.service = {.name = "default/large:", .cluster_ip = *IpAddress::Parse("10.96.0.1"), .port = 80};
  port.has_endpoints = true;
  for (int i = 0; i < kEndpoints; ++i) {
    port.cluster.push_back({IpAddress::Parse("10.1.64.0")->Plus(i), kEndpointPort, true});
  }
  // Who answered how many of the tries.
  auto answered = [&](const char* client) {
    EXPECT_TRUE(TakeFlows((*world)->node(), proxy::kTcp));
    Question question = (*world)->From(client, true);
    question.to = port.service.cluster_ip;
    question.port = port.service.port;
    for (int i = 0; i < kTries; ++i) {
      auto answer = Ask((*world)->Place(client), question);
      EXPECT_TRUE(answer) << client << ": " << answer.error().message();
    }
    std::map<IpAddress, int> out;
    auto flows = TakeFlows((*world)->node(), proxy::kTcp);
    EXPECT_TRUE(flows);
    for (const netlink::Flow& flow : flows.value_or(std::vector<netlink::Flow>())) {
      if (flow.destination == port.service.cluster_ip) ++out[flow.replier];
    }
    return out;
  };
  for (int count : {kEndpoints, 3, kEndpoints}) {
    proxy::ResolvedPort now = port;
    now.cluster.resize(static_cast<size_t>(count));
    (*plane)->SetService("default/large", {now});
    auto synced = (*plane)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    for (const char* client : {"pod2", "outside"}) {
      std::map<IpAddress, int> by = answered(client);
      // 200 draws out of 5000 give about 196 distinct ones; fewer than 150 is practically impossible.
      EXPECT_GE(by.size(), std::min<size_t>(static_cast<size_t>(count), 150)) << client;
      for (const auto& [ip, times] : by) EXPECT_LT(ip, port.cluster[0].ip.Plus(count)) << client;
    }
  }
}

}  // namespace
}  // namespace keelson::netns
