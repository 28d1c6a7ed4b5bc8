// The cost of Services for a packet: the first packet of a flow, and connections per second, between pods on
// one node. Without Services, with kube-proxy's tables of several sizes, with upstream's ruleset, and with
// eBPF at sockets. Run on a quiet machine: the figures are a few microseconds.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "proxy/nftables/testing/bench_memory.h"
#include "tests/netns/bench_paths.h"

namespace keelson::netns {
namespace {

// The kernel memory of the rules. Other processes add noise of some MiB.
void KernelMemory(benchmark::State& state) {
  for (auto _ : state) {
    auto bench = PreparePath(kDirect, 0);
    if (!bench) return state.SkipWithError(bench.error().message().c_str());
    const double before = proxy::nftables::SettledKernelMemory();
    Result<> loaded = Load(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)), *bench);
    if (!loaded) return state.SkipWithError(loaded.error().message().c_str());
    state.counters["kernel_MiB"] = proxy::nftables::SettledKernelMemory() - before;
    state.counters["load_ms"] = bench->load_ms;
    if (proxy::nftables::SomebodyListens()) state.SetLabel("while somebody listens to nf_tables");
  }
}

// One request and response per new socket: only the first packet of a flow and its reply.
void Asked(benchmark::State& state, uint8_t protocol) {
  auto bench = PreparePath(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)));
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
  for (int size : {1, 5000, 30000}) bench->Args({kEbpf, size});
}
BENCHMARK(KernelMemory)
    ->ArgNames({"path", "services"})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({{kKeelson, kUpstream, kEbpf}, {1000, 5000, 10000}});
BENCHMARK(FirstPacket)->Apply(Paths);
BENCHMARK(TcpConnection)->Apply(Paths);

}  // namespace
}  // namespace keelson::netns
