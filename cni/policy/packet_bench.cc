// What policies cost the first packet of a connection, and later ones: datagrams that a node with the policies of a
// thousand pods forwards between two namespaces. A datagram crosses the node while send() runs.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <vector>

#include "cni/policy/testing/bench_world.h"
#include "lib/base/fd.h"
#include "lib/linux/netns.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"
#include "lib/nft/diff.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::policy {
namespace {

constexpr uint16_t kPort = 9;
constexpr size_t kAtOnce = 500;

// None: connection tracking alone, as kube-proxy needs it. Hook: a chain at `forward` without rules. Established: a chain
// whose one rule lets packets of established connections go on, which is the least that any policy engine does.
enum Rules { kNone, kHook, kEstablished, kChainPerPolicy, kOurs };
constexpr const char* kNames[] = {"without a hook", "an empty hook", "one rule", "a chain a policy, 1000",
                                  "1000 policies"};

nft::Ruleset RulesOf(const World& world, Rules rules) {
  if (rules == kOurs) return MakePlan(world.cluster, world.node, world.attachments).rules;
  if (rules == kChainPerPolicy) return ChainPerPolicy(world);
  nft::Ruleset out{.table = {nft::Family::kInet, "hook"}};
  auto& forward = out.chains["forward"];
  forward.chain = {"forward", nft::Hook{nft::HookType::kFilter, nft::HookPoint::kForward, 0}};
  if (rules == kHook) return out;
  nft::Rule known("forward");
  known.AnyBit(nft::Field::kCtState, 6).Finish({nft::Verdict::Kind::kAccept});
  forward.rules.push_back(std::move(known));
  return out;
}

// Pods 1 (client) and 0 (server) of the world.
struct Wire {
  std::optional<linux::NetNs> router, client, server;
  UniqueFd sink;

  Result<> AddEnd(std::optional<linux::NetNs>& end, const char* name, const IpAddress& address) {
    KEELSON_ASSIGN_OR_RETURN(end, linux::NetNs::Make());
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket here, netlink::Socket::OpenIn(*router));
    KEELSON_RETURN_IF_ERROR(
        netlink::CreateVeth(here, {.name = name, .up = true}, {.name = "eth0", .netns_fd = end->fd()}, 0));
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket there, netlink::Socket::OpenIn(*end));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link inside, netlink::GetLink(there, "eth0"));
    KEELSON_RETURN_IF_ERROR(netlink::SetUp(there, inside.index));
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(there, inside.index, IpPrefix::Host(address)));
    KEELSON_RETURN_IF_ERROR(
        netlink::AddRoute(there, {.destination = *IpPrefix::Parse("0.0.0.0/0"), .link_index = inside.index}));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link outside, netlink::GetLink(here, name));
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(here, outside.index, *IpPrefix::Parse("10.128.255.1/32")));
    KEELSON_RETURN_IF_ERROR(
        netlink::AddRoute(here, {.destination = IpPrefix::Host(address), .link_index = outside.index}));
    return router->Run([&]() -> Result<> {
      return linux::WriteSysctl("net/ipv4/conf/" + std::string(name) + "/proxy_arp", "1");
    });
  }

  Result<> Make(const World& world, Rules rules) {
    KEELSON_ASSIGN_OR_RETURN(router, linux::NetNs::Make());
    KEELSON_RETURN_IF_ERROR(
        router->Run([]() -> Result<> { return linux::WriteSysctl("net/ipv4/ip_forward", "1"); }));
    KEELSON_RETURN_IF_ERROR(AddEnd(client, "c0", PodNumber(1).addresses[0]));
    KEELSON_RETURN_IF_ERROR(AddEnd(server, "s0", PodNumber(0).addresses[0]));
    KEELSON_RETURN_IF_ERROR(server->Run([&]() -> Result<> {
      sink.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      sockaddr_in any{};
      any.sin_family = AF_INET;
      any.sin_port = htons(kPort);
      return ::bind(sink.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 ? Result<>()
                                                                                    : ErrnoError("bind");
    }));
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel(*router));
    nft::Transaction tracking({nft::Family::kInet, "tracking"});
    tracking.AddTable();
    tracking.AddChain({"prerouting", nft::Hook{nft::HookType::kFilter, nft::HookPoint::kPrerouting, 0}});
    nft::Rule rule("prerouting");
    tracking.AddRule(std::move(rule.AnyBit(nft::Field::kCtState, 2).Counter()));
    KEELSON_RETURN_IF_ERROR(kernel->Apply(tracking));
    if (rules == kNone) return {};
    return kernel->Apply(nft::Diff(std::nullopt, RulesOf(world, rules)));
  }
};

// Clients with a connected socket each: many at once, since each walk into the namespace takes a thread.
Result<std::vector<UniqueFd>> Clients(const Wire& wire, size_t count) {
  std::vector<UniqueFd> out;
  KEELSON_RETURN_IF_ERROR(wire.client->Run([&]() -> Result<> {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(kPort);
    std::memcpy(&to.sin_addr, PodNumber(0).addresses[0].bytes().data(), 4);
    while (out.size() < count) {
      out.emplace_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      if (::connect(out.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
        return ErrnoError("connect");
      }
    }
    return {};
  }));
  return out;
}

// With `reply` the connection counts as established: the server has answered.
Result<> Send(const Wire& wire, const UniqueFd& fd, bool reply) {
  if (::send(fd.get(), "x", 1, 0) != 1) return ErrnoError("send");
  char byte = 0;
  sockaddr_in from{};
  socklen_t size = sizeof from;
  if (::recvfrom(wire.sink.get(), &byte, 1, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size) != 1) {
    return ErrnoError("the packet has not come through");
  }
  if (reply && ::sendto(wire.sink.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&from), size) != 1) {
    return ErrnoError("sendto");
  }
  return {};
}

void Packets(benchmark::State& state, bool first) {
  state.SetLabel(kNames[state.range(0)]);
  World world(1000);
  Policy& policy = world.cluster.policies.at("ns-0/policy-0");
  policy.ingress[0].ports = {{.protocol = IPPROTO_UDP, .first = kPort, .last = kPort}};
  Wire wire;
  Result<> made = wire.Make(world, static_cast<Rules>(state.range(0)));
  if (!made) return state.SkipWithError(made.error().message().c_str());
  auto clients = Clients(wire, kAtOnce);
  if (!clients) return state.SkipWithError(clients.error().message().c_str());
  // Neighbours are known, and the connection is established.
  (void)::send(clients->back().get(), "x", 1, 0);
  char byte = 0;
  (void)::recv(wire.sink.get(), &byte, 1, 0);
  if (Result<> sent = Send(wire, clients->back(), true); !sent) {
    return state.SkipWithError(sent.error().message().c_str());
  }
  for (auto _ : state) {
    if (first) {
      clients->pop_back();
      if (clients->empty()) {
        state.PauseTiming();
        clients = Clients(wire, kAtOnce);
        if (!clients) return state.SkipWithError(clients.error().message().c_str());
        state.ResumeTiming();
      }
    }
    if (Result<> sent = Send(wire, clients->back(), false); !sent) {
      return state.SkipWithError(sent.error().message().c_str());
    }
  }
}
void FirstPacket(benchmark::State& state) { Packets(state, true); }
void LaterPacket(benchmark::State& state) { Packets(state, false); }

BENCHMARK(FirstPacket)->DenseRange(kNone, kOurs)->Iterations(5'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(LaterPacket)->DenseRange(kNone, kOurs)->Iterations(20'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace keelson::cni::policy
