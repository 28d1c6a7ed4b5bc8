// What a packet pays for Services: the first packet of a flow, and connections a second, from one pod to
// another on the same node. Without Services at all, through kube-proxy's tables of several sizes, and
// through rules of upstream's shape. Run on a quiet machine: the figures are a few microseconds.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "proxy/nftables/bench_memory.h"
#include "tests/netns/service_world.h"
#include "tests/netns/upstream_shape.h"

namespace keelson::netns {
namespace {

enum Path { kDirect, kKeelson, kUpstream };

// The Service that is asked, among `size - 1` others.
std::vector<proxy::ResolvedPort> Services(int size) {
  std::vector<proxy::ResolvedPort> out;
  for (int i = 0; i < size; ++i) {
    for (uint8_t protocol : {proxy::kTcp, proxy::kUdp}) {
      if (i > 0 && protocol == proxy::kUdp) continue;
      proxy::ResolvedPort& port = out.emplace_back();
      port.service = {.name = "ns/s" + std::to_string(i) + ":",
                      .protocol = protocol,
                      .cluster_ip = IpAddress::Parse("10.96.0.1")->Plus(i),
                      .port = 80};
      port.has_endpoints = true;
      if (i == 0) {
        port.cluster = {{EndpointAddress("pod2", true), kEndpointPort, true}};
      } else {
        for (int e = 0; e < 3; ++e)
          port.cluster.push_back({IpAddress::Parse("10.64.0.1")->Plus(i * 3 + e), 80});
      }
    }
  }
  return out;
}

struct Bench {
  std::unique_ptr<ServiceWorld> world;
  std::unique_ptr<ServicePlane> plane;
  Question question;
  double load_ms = 0;  // until the kernel had all of it
};

Result<> Load(Path path, int size, Bench& out) {
  std::vector<proxy::ResolvedPort> services = Services(size);
  const auto begin = std::chrono::steady_clock::now();
  if (path == kKeelson) {
    ASSIGN_OR_RETURN(out.plane, out.world->Start({.pod_cidrs = {*IpPrefix::Parse("10.0.0.0/8")}}));
    for (size_t i = 0; i < services.size(); ++i) out.plane->SetService(std::to_string(i), {services[i]});
    RETURN_IF_ERROR(out.plane->Sync());
  } else if (path == kUpstream) {
    ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel(out.world->node()));
    RETURN_IF_ERROR(kernel->Apply(UpstreamShape(services)));
  }
  out.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

Result<Bench> Prepare(Path path, int size) {
  Bench out;
  ASSIGN_OR_RETURN(out.world, ServiceWorld::Make());
  out.question = out.world->From("pod1", true);
  out.question.to = path == kDirect ? EndpointAddress("pod2", true) : *IpAddress::Parse("10.96.0.1");
  out.question.port = path == kDirect ? kEndpointPort : 80;
  RETURN_IF_ERROR(Load(path, size, out));
  return out;
}

// What the rules take of the kernel's memory. Others on the machine disturb by some MiB.
void KernelMemory(benchmark::State& state) {
  for (auto _ : state) {
    auto bench = Prepare(kDirect, 0);
    if (!bench) return state.SkipWithError(bench.error().message().c_str());
    const double before = proxy::nftables::SettledKernelMemory();
    Result<> loaded = Load(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)), *bench);
    if (!loaded) return state.SkipWithError(loaded.error().message().c_str());
    state.counters["kernel_MiB"] = proxy::nftables::SettledKernelMemory() - before;
    state.counters["load_ms"] = bench->load_ms;
    if (proxy::nftables::SomebodyListens()) state.SetLabel("while somebody listens to nf_tables");
  }
}

// One question and its answer, each from a new socket: all of it is the first packet of a flow and its reply.
void Asked(benchmark::State& state, uint8_t protocol) {
  auto bench = Prepare(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)));
  if (!bench) return state.SkipWithError(bench.error().message().c_str());
  bench->question.protocol = protocol;
  const linux::NetNs& place = bench->world->Place("pod1");
  std::vector<double> times;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    Result<Answer> answer = Ask(place, bench->question);
    double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!answer) return state.SkipWithError(answer.error().message().c_str());
    state.SetIterationTime(took);
    times.push_back(took);
  }
  std::sort(times.begin(), times.end());
  if (times.empty()) return;
  state.counters["load_ms"] = bench->load_ms;
  state.counters["p50_us"] = times[times.size() / 2] * 1e6;
  state.counters["p99_us"] = times[times.size() * 99 / 100] * 1e6;
  state.counters["per_second"] =
      benchmark::Counter(static_cast<double>(times.size()), benchmark::Counter::kIsRate);
}

void FirstPacket(benchmark::State& state) { Asked(state, proxy::kUdp); }
void TcpConnection(benchmark::State& state) { Asked(state, proxy::kTcp); }

// The path, and how many Services there are.
void Paths(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"path", "services"})->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(2000);
  bench->Args({kDirect, 0});
  for (int size : {1, 5000, 30000}) bench->Args({kKeelson, size});
  for (int size : {1, 5000, 30000}) bench->Args({kUpstream, size});
}
BENCHMARK(KernelMemory)
    ->ArgNames({"path", "services"})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({{kKeelson, kUpstream}, {1000, 5000, 10000}});
BENCHMARK(FirstPacket)->Apply(Paths);
BENCHMARK(TcpConnection)->Apply(Paths);

}  // namespace
}  // namespace keelson::netns
