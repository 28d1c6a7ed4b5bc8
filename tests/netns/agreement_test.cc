// Random Services: each mode's plan, followed packet by packet and call by call with nodectl's code, must
// agree with the model. Needs no kernel, so there are many cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ctl/trace/path.h"
#include "proxy/model/service_change_tracker.h"
#include "tests/netns/planned_node.h"
#include "tests/netns/random_services.h"

namespace keelson::netns {
namespace {

using ctl::Path;
using ctl::SocketCall;
using proxy::Decision;
using proxy::TrafficVerdict;
using Targets = std::set<std::pair<IpAddress, uint16_t>>;

constexpr int kServices = 6, kRounds = 60;
constexpr const char* kEntries[] = {"cluster", "external", "lb", "nodeport"};

enum class Pods { kByCidr, kByBridge, kNotAtAll };

struct Setting {
  const char* mode;
  bool v4;
  Pods pods = Pods::kByCidr;
  bool masquerade_all = false;
};

proxy::nftables::Options OptionsOf(const Setting& setting) {
  proxy::nftables::Options out{.v4 = setting.v4, .masquerade_all = setting.masquerade_all};
  if (setting.pods == Pods::kByBridge) out.pod_bridge = "br0";
  if (setting.pods == Pods::kByCidr) {
    for (const char* cidr : {"10.1.0.0/16", "10.2.0.0/16", "fd01::/64", "fd02::/64"}) {
      if (IpPrefix prefix = *IpPrefix::Parse(cidr); prefix.is_v4() == setting.v4) {
        out.pod_cidrs.push_back(prefix);
      }
    }
  }
  return out;
}

ctl::Source SourceOf(const std::string& client, bool v4) {
  if (client == "node") return {ctl::Source::kHost, client, {}};
  const bool here = client == "pod1" || client == "pod2";
  return {here ? ctl::Source::kPod : ctl::Source::kAddress, client, {ClientAddress(client, v4)}};
}

// True when eBPF has selected the endpoint, so that no rule sees the Service address.
bool ChosenByEbpf(const Path& path) {
  auto chose = [](const std::vector<nft::TraceStep>& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const nft::TraceStep& step) {
      return step.chain.starts_with("ebpf") && step.what.starts_with("to ");
    });
  };
  return chose(path.steps) || std::any_of(path.backends.begin(), path.backends.end(),
                                          [&](const ctl::Backend& one) { return chose(one.steps); });
}

std::string TextOf(const Targets& targets) {
  std::string out;
  for (const auto& [ip, port] : targets) out += ip.ToString() + ":" + std::to_string(port) + " ";
  return out;
}

// Returns how the path differs from the model; empty: it agrees.
std::string Difference(const Decision& decision, const Path& path, const IpAddress& client,
                       ctl::Source::Kind kind, const IpAddress& host, bool sticky) {
  const std::string verdict = "verdict " + std::string(VerdictName(path.verdict));
  if (!path.not_understood.empty()) return "not understood: " + path.not_understood[0];
  if (decision.verdict == TrafficVerdict::kRefused) {
    return path.verdict == Path::kRejected ? "" : verdict + ", not refused";
  }
  if (decision.verdict == TrafficVerdict::kDropped) {
    return path.verdict == Path::kDropped ? "" : verdict + ", not dropped";
  }
  if (path.verdict != Path::kDelivered) return verdict + ", not served";
  Targets wanted, got;
  for (const proxy::Backend& backend : *decision.endpoints) wanted.insert({backend.ip, backend.port});
  for (const ctl::Backend& backend : path.backends) got.insert({backend.ip, backend.port});
  if (got != wanted) return "goes to " + TextOf(got) + "and not to " + TextOf(wanted);
  // Clients with affinity keep an endpoint's slot: a removed endpoint leaves a hole.
  if (path.misses && !sticky) return "goes nowhere at times";
  const bool by_ebpf = ChosenByEbpf(path), from_node = kind == ctl::Source::kHost,
             pod_here = kind == ctl::Source::kPod;
  for (const ctl::Backend& backend : path.backends) {
    if (backend.refused || !backend.reachable) return "does not reach " + backend.ip.ToString();
    // Traffic to the node itself does not leave it. A socket-level choice uses the endpoint's address.
    if (backend.ip == host || (by_ebpf && from_node)) continue;
    // A pod that reaches itself is masqueraded on its own node, whatever else holds.
    const bool to_itself = backend.ip == client;
    if (to_itself && !pod_here) continue;
    if (backend.masqueraded != (decision.masquerade || (to_itself && !by_ebpf))) {
      return backend.ip.ToString() + (backend.masqueraded ? " does not see" : " sees") + " the client";
    }
  }
  return "";
}

class Agreement : public ::testing::TestWithParam<Setting> {
 protected:
  void Check(const ServiceBlock& block, const proxy::ResolvedPort& port, const std::string& client) {
    const Setting& setting = GetParam();
    const bool v4 = setting.v4;
    const ctl::Source source = SourceOf(client, v4);
    const proxy::TrafficOptions traffic{.masquerade_all = setting.masquerade_all,
                                        .detects_pods = setting.pods != Pods::kNotAtAll};
    for (const char* entry : kEntries) {
      if (std::string(entry) != "cluster" && !block.Has(entry)) continue;
      const auto [ip, to] = block.Destination(entry, v4);
      const Decision decision =
          Decide(port, *EntryOf(entry), OriginOf(client), ClientAddress(client, v4), traffic);
      std::vector<SocketCall> calls = {SocketCall::kConnect};
      if (block.protocol == "udp" && source.kind != ctl::Source::kAddress) calls.push_back(SocketCall::kSend);
      for (SocketCall call : calls) {
        const Path path = FollowPacket(*node_, source, {.ip = ip, .port = to}, block.Protocol(), call);
        EXPECT_EQ(Difference(decision, path, ClientAddress(client, v4), source.kind,
                             EndpointAddress("host", v4), block.Has("sticky")),
                  "")
            << client << " " << entry << " by " << (call == SocketCall::kSend ? "sendmsg" : "connect");
        (source.kind == ctl::Source::kAddress ? at_devices_ : at_sockets_) += ChosenByEbpf(path);
        ++compared_;
      }
    }
  }
  std::unique_ptr<PlannedNode> node_;
  int compared_ = 0, at_sockets_ = 0, at_devices_ = 0;
};

TEST_P(Agreement, PlansDoWhatTheModelSays) {
  const Setting& setting = GetParam();
  for (uint32_t seed : {1u, 20260101u}) {
    RandomServices random(seed);
    node_ = std::make_unique<PlannedNode>(setting.mode, OptionsOf(setting));
    proxy::ServiceChangeTracker map(proxy::NodeTopology{"here", "a"});
    std::map<int, ServiceBlock> blocks;
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
      const int number = 1 + round % kServices;
      const ServiceBlock block = random.AnyBlock(number);
      const std::string key = "default/" + block.name;
      const corev1::Service service = block.Service();
      const discoveryv1::EndpointSlice slice = block.Slice(setting.v4);
      // Some are removed for a while: leftovers must not affect others.
      const bool gone = random.Chance(5);
      map.UpdateService(key, gone ? nullptr : &service);
      map.UpdateSlice(key + "-s", &slice);
      node_->SetService(key, map.Resolve(key, setting.v4));
      blocks.erase(number);
      if (!gone) blocks.emplace(number, block);
      node_->Write();
      // The one that has changed, and one that has not.
      const int other = 1 + (round + 1 + round / kServices) % kServices;
      for (const auto& [of, one] : blocks) {
        if (of != number && of != other) continue;
        SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round) + " " + one.name);
        const std::vector<proxy::ResolvedPort> ports = map.Resolve("default/" + one.name, setting.v4);
        ASSERT_EQ(ports.size(), 1u);
        // The bridge does not know pods of other nodes.
        for (const char* client : {"pod1", "pod2", "node", "outside", "stranger", "remote"}) {
          if (setting.pods != Pods::kByCidr && std::string(client) == "remote") continue;
          Check(one, ports[0], client);
        }
      }
    }
  }
  EXPECT_GT(compared_, 2000);
  EXPECT_EQ(at_sockets_ > 200, std::string(setting.mode) == "ebpf") << at_sockets_;
  EXPECT_EQ(at_devices_ > 200, std::string(setting.mode) == "ebpf") << at_devices_;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Agreement,
    ::testing::Values(Setting{"nftables", true}, Setting{"nftables", false},
                      Setting{"nftables", true, Pods::kByBridge}, Setting{"nftables", true, Pods::kNotAtAll},
                      Setting{"nftables", false, Pods::kByCidr, true}, Setting{"ipvs", true},
                      Setting{"ipvs", false}, Setting{"ipvs", true, Pods::kByBridge},
                      Setting{"ipvs", true, Pods::kNotAtAll}, Setting{"ipvs", false, Pods::kByCidr, true},
                      Setting{"ebpf", true}, Setting{"ebpf", false}, Setting{"ebpf", true, Pods::kByBridge},
                      Setting{"ebpf", true, Pods::kNotAtAll}, Setting{"ebpf", false, Pods::kByCidr, true}),
    [](const auto& setting) {
      const Setting& s = setting.param;
      return std::string(s.mode) + (s.v4 ? "Ipv4" : "Ipv6") +
             (s.pods == Pods::kByBridge   ? "ByBridge"
              : s.pods == Pods::kNotAtAll ? "WithoutPods"
                                          : "") +
             (s.masquerade_all ? "MasqueradeAll" : "");
    });

}  // namespace
}  // namespace keelson::netns
