// The cost of a thousand nodes: planning, and writing to the kernel of a separate network namespace.
#include <benchmark/benchmark.h>

#include "cni/agent/dataplane.h"
#include "cni/agent/masquerade.h"
#include "lib/linux/netns.h"

namespace keelson::cni::agent {
namespace {

IpAddress Address(const char* base, int by) { return IpAddress::Parse(base)->Plus(by); }

// Node 0 is this one. All others are on the link or, with `far`, behind a router.
NodeMap Nodes(int count, bool far) {
  NodeMap nodes;
  for (int i = 0; i <= count; ++i) {
    NodeInfo node;
    node.name = "node-" + std::to_string(i);
    node.pod_cidrs = {IpPrefix(Address("10.128.0.0", i * 256), 24)};
    node.addresses = {Address(far && i > 0 ? "10.9.0.1" : "10.0.0.1", i)};
    nodes[node.name] = std::move(node);
  }
  return nodes;
}

Config ForNodeZero() {
  Config config;
  config.node_name = "node-0";
  config.cluster_cidrs = {*IpPrefix::Parse("10.128.0.0/9")};
  return config;
}

struct Site {
  linux::NetNs netns;
  netlink::Socket socket;
};

Result<Site> MakeSite() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenIn(netns));
  KEELSON_RETURN_IF_ERROR(netlink::CreateBridge(socket, "eth0", 0, std::nullopt));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, "eth0"));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, link.index));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(socket, link.index, *IpPrefix::Parse("10.0.0.1/16")));
  return Site{std::move(netns), std::move(socket)};
}

Result<Changes> SyncAll(netlink::Socket& socket, const Config& config, const NodeMap& nodes) {
  KEELSON_ASSIGN_OR_RETURN(HostState host, ReadHost(socket));
  KEELSON_ASSIGN_OR_RETURN(Plan plan, MakePlan(config, nodes, host));
  return Apply(socket, config, plan, host);
}

void MakePlanOnly(benchmark::State& state) {
  auto site = MakeSite();
  if (!site) return state.SkipWithError(site.error().message().c_str());
  NodeMap nodes = Nodes(static_cast<int>(state.range(0)), state.range(1) != 0);
  HostState host = *ReadHost(site->socket);
  Config config = ForNodeZero();
  for (auto _ : state) benchmark::DoNotOptimize(MakePlan(config, nodes, host));
}

// The first sync: as many routes (with `far` also neighbours and forwarding entries) as there are nodes.
void NodesAppear(benchmark::State& state) {
  NodeMap nodes = Nodes(static_cast<int>(state.range(0)), state.range(1) != 0);
  Config config = ForNodeZero();
  for (auto _ : state) {
    state.PauseTiming();
    auto site = MakeSite();
    if (!site) return state.SkipWithError(site.error().message().c_str());
    state.ResumeTiming();
    auto changes = SyncAll(site->socket, config, nodes);
    if (!changes) return state.SkipWithError(changes.error().message().c_str());
    if (!changes->refused.empty()) return state.SkipWithError(changes->refused.front().message().c_str());
    state.PauseTiming();
    { auto ended = std::move(*site); }
    state.ResumeTiming();
  }
  state.counters["routes/s"] =
      benchmark::Counter(static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate);
}

// A sync that changes nothing: the cost of a restart, an event or the periodic resync.
void NothingToDo(benchmark::State& state) {
  auto site = MakeSite();
  if (!site) return state.SkipWithError(site.error().message().c_str());
  NodeMap nodes = Nodes(static_cast<int>(state.range(0)), state.range(1) != 0);
  Config config = ForNodeZero();
  if (auto first = SyncAll(site->socket, config, nodes); !first) {
    return state.SkipWithError(first.error().message().c_str());
  }
  for (auto _ : state) {
    auto changes = SyncAll(site->socket, config, nodes);
    if (!changes || changes->total() != 0) return state.SkipWithError("the second sync changed something");
  }
}

BENCHMARK(MakePlanOnly)->Args({1000, 0})->Args({1000, 1})->Unit(benchmark::kMillisecond);
BENCHMARK(NodesAppear)->Args({1000, 0})->Args({1000, 1})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(NothingToDo)->Args({1000, 0})->Args({1000, 1})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace keelson::cni::agent
