// Runs packets.txt through every dataplane and the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "lib/linux/sysctl.h"
#include "proxy/model/service_change_tracker.h"
#include "tests/netns/service_world.h"

namespace keelson::netns {
namespace {

using proxy::Decision;
using proxy::TrafficVerdict;

// The model's result, in the table's words.
std::vector<std::string> Words(const Decision& decision, bool v4) {
  if (decision.verdict == TrafficVerdict::kRefused) return {"refused"};
  if (decision.verdict == TrafficVerdict::kDropped) return {"dropped"};
  std::vector<std::string> out;
  for (const proxy::Backend& backend : *decision.endpoints) {
    for (const char* name : {"pod1", "pod2", "remote", "host"}) {
      if (backend.ip == EndpointAddress(name, v4)) out.push_back(name);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class PacketTable : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto table = ReadPacketTable(KEELSON_PACKET_TABLE);
    ASSERT_TRUE(table) << table.error().message();
    table_ = std::move(*table);
    for (const ServiceBlock& block : table_) {
      corev1::Service service = block.Service();
      map_.UpdateService("default/" + block.name, &service);
      for (bool v4 : {true, false}) {
        discoveryv1::EndpointSlice slice = block.Slice(v4);
        map_.UpdateSlice("default/" + block.name + (v4 ? "-4" : "-6"), &slice);
      }
    }
  }

  // Runs every line in one family, except lines with clients in `without`.
  void Run(PlaneOptions options, const std::set<std::string>& without = {}) {
    if (Result<> possible = Possible(options.mode); !possible) GTEST_SKIP() << possible.error().message();
    auto world = ServiceWorld::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    auto plane = (*world)->Start(options);
    if (!plane && plane.error().Is(Code::kUnimplemented)) GTEST_SKIP() << plane.error().message();
    ASSERT_TRUE(plane) << plane.error().message();
    for (const ServiceBlock& block : table_) {
      (*plane)->SetService("default/" + block.name, map_.Resolve("default/" + block.name, options.v4));
    }
    Result<> synced = (*plane)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    int count = 0;
    for (const ServiceBlock& block : table_) {
      if (!Speaks(block.Protocol())) {
        std::cout << block.name << ": skipped, this kernel's own SCTP would answer too\n";
        continue;
      }
      for (const PacketCase& c : block.cases) {
        if (without.contains(c.client)) continue;
        Question question = (*world)->From(c.client, options.v4);
        question.protocol = block.Protocol();
        std::tie(question.to, question.port) = block.Destination(c.entry, options.v4);
        if (question.to.IsLoopback()) question.source.reset();
        EXPECT_EQ((*world)->Check(c.client, question, c.answers, c.seen, block.Has("sticky")), "")
            << "packets.txt:" << c.line << ": " << block.name << ": " << c.client << " " << c.entry;
        ++count;
      }
    }
    std::cout << count << " cases\n";
  }

  static std::vector<ServiceBlock> table_;
  static proxy::ServiceChangeTracker map_;
};
std::vector<ServiceBlock> PacketTable::table_;
proxy::ServiceChangeTracker PacketTable::map_{proxy::NodeTopology{"here", "a"}};

std::vector<IpPrefix> PodCidrs(bool v4) {
  if (v4) return {*IpPrefix::Parse("10.1.0.0/16"), *IpPrefix::Parse("10.2.0.0/16")};
  return {*IpPrefix::Parse("fd01::/64"), *IpPrefix::Parse("fd02::/64")};
}

TEST_F(PacketTable, TheModelSaysTheSame) {
  int count = 0;
  for (const ServiceBlock& block : table_) {
    for (bool v4 : {true, false}) {
      std::vector<proxy::ResolvedPort> ports = map_.Resolve("default/" + block.name, v4);
      for (const PacketCase& c : block.cases) {
        std::optional<proxy::Frontend> entry = EntryOf(c.entry);
        if (!entry || ports.empty()) continue;
        Decision decision = proxy::Decide(ports[0], *entry, OriginOf(c.client), ClientAddress(c.client, v4));
        EXPECT_EQ(Words(decision, v4), c.answers) << "packets.txt:" << c.line;
        const bool on_host = c.answers == std::vector<std::string>{"host"};  // nothing leaves the node
        if (c.seen != PacketCase::kAny && !on_host && c.answers != std::vector<std::string>{c.client}) {
          EXPECT_EQ(decision.masquerade, c.seen == PacketCase::kMasq) << "packets.txt:" << c.line;
        }
        ++count;
      }
    }
  }
  EXPECT_GT(count, 300);
}

TEST_F(PacketTable, NftablesIpv4) { Run({.v4 = true, .pod_cidrs = PodCidrs(true)}); }
TEST_F(PacketTable, NftablesIpv6) { Run({.v4 = false, .pod_cidrs = PodCidrs(false)}); }
// A pod elsewhere does not come over the bridge.
TEST_F(PacketTable, NftablesByBridge) { Run({.v4 = true, .pod_bridge = "br0"}, {"remote"}); }

TEST_F(PacketTable, EbpfIpv4) { Run({.mode = "ebpf", .v4 = true, .pod_cidrs = PodCidrs(true)}); }
TEST_F(PacketTable, EbpfIpv6) { Run({.mode = "ebpf", .v4 = false, .pod_cidrs = PodCidrs(false)}); }
TEST_F(PacketTable, EbpfDirectIpv4) {
  Run({.mode = "ebpf", .v4 = true, .pod_cidrs = PodCidrs(true), .direct = true});
}

// These need a kernel with IPVS: the VM of tests/vm.
TEST_F(PacketTable, IpvsIpv4) { Run({.mode = "ipvs", .v4 = true, .pod_cidrs = PodCidrs(true)}); }
TEST_F(PacketTable, IpvsIpv6) { Run({.mode = "ipvs", .v4 = false, .pod_cidrs = PodCidrs(false)}); }
TEST_F(PacketTable, IpvsByBridge) { Run({.mode = "ipvs", .v4 = true, .pod_bridge = "br0"}, {"remote"}); }

// Without br_netfilter, replies between pods on one bridge bypass the node, unless the client is the node or
// nothing is translated.
class Bypass : public ::testing::TestWithParam<const char*> {};

TEST_P(Bypass, PodsReachEachOtherThoughRepliesWouldPassTheNodeBy) {
  const std::string mode = GetParam();
  if (Result<> possible = Possible(mode); !possible) GTEST_SKIP() << possible.error().message();
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  Result<> off =
      (*world)->node().Run([] { return linux::EnsureSysctl("net/bridge/bridge-nf-call-iptables", "0"); });
  if (!off && !off.error().Is(Code::kNotFound)) GTEST_SKIP() << off.error().message();
  auto plane = (*world)->Start({.mode = mode, .pod_cidrs = PodCidrs(true), .replies_bypass_node = true});
  ASSERT_TRUE(plane) << plane.error().message();
  ServiceBlock block{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport"}};
  block.endpoints = {"pod2"};
  proxy::ServiceChangeTracker map(proxy::NodeTopology{"here", "a"});
  const corev1::Service service = block.Service();
  const discoveryv1::EndpointSlice slice = block.Slice(true);
  map.UpdateService("default/web", &service);
  map.UpdateSlice("default/web-4", &slice);
  (*plane)->SetService("default/web", map.Resolve("default/web", true));
  Result<> synced = (*plane)->Sync();
  ASSERT_TRUE(synced) << synced.error().message();
  for (const auto& [client, entry, seen] :
       {std::tuple("pod1", "cluster", mode == "ebpf" ? PacketCase::kKeep : PacketCase::kMasq),
        {"pod1", "nodeport", PacketCase::kMasq},
        {"remote", "cluster", PacketCase::kAny},
        {"outside", "cluster", PacketCase::kMasq}}) {
    Question question = (*world)->From(client, true);
    std::tie(question.to, question.port) = block.Destination(entry, true);
    EXPECT_EQ((*world)->Check(client, question, {"pod2"}, seen, false), "") << client << " " << entry;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Bypass, ::testing::Values("nftables", "ipvs", "ebpf"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace keelson::netns
