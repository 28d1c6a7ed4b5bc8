// Service rules through the kernel: everything at once, a restart, and one change. In a network namespace of
// its own.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "proxy/nftables/dataplane.h"
#include "proxy/nftables/testing/bench_memory.h"

namespace keelson::proxy::nftables {
namespace {

std::vector<ResolvedPort> ServiceNumber(int i) {
  auto ip = [](const char* base, int offset) { return IpAddress::Parse(base)->Plus(offset); };
  ResolvedPort port;
  port.service = {
      .name = "ns/svc-" + std::to_string(i) + ":http", .cluster_ip = ip("10.96.0.1", i), .port = 80};
  if (i % 10 == 0) port.service.node_port = static_cast<uint16_t>(20000 + i % 40000);
  for (int e = 0; e < 3; ++e) port.cluster.push_back({ip("10.128.0.1", i * 3 + e), 8080, e == 0});
  port.has_endpoints = true;
  return {port};
}

// What each iteration took: for the first use of something may cost more than all others together.
class Times {
 public:
  int count() const { return static_cast<int>(took_.size()); }
  void Begin() { begin_ = std::chrono::steady_clock::now(); }
  void End(benchmark::State& state) {
    took_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
    state.SetIterationTime(took_.back());
  }
  void Report(benchmark::State& state) {
    std::sort(took_.begin(), took_.end());
    state.counters["p50_us"] = took_[took_.size() / 2] * 1e6;
    state.counters["p99_us"] = took_[took_.size() * 99 / 100] * 1e6;
    state.counters["max_us"] = took_.back() * 1e6;
  }

 private:
  std::chrono::steady_clock::time_point begin_;
  std::vector<double> took_;
};

std::unique_ptr<Dataplane> MakeDataplane(benchmark::State& state, const linux::NetNs& netns) {
  auto kernel = nft::OpenKernel(netns);
  if (!kernel) {
    state.SkipWithError(kernel.error().message().c_str());
    return nullptr;
  }
  return std::make_unique<Dataplane>(std::move(*kernel), Options{});
}

void FullSync(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto netns = linux::NetNs::Make();
    if (!netns) return state.SkipWithError(netns.error().message().c_str());
    auto dataplane = MakeDataplane(state, *netns);
    if (!dataplane) return;
    ::malloc_trim(0);
    const double kernel_before = SettledKernelMemory();
    const double process_before = Mebibytes("/proc/self/smaps_rollup", "Anonymous");
    state.ResumeTiming();
    for (int i = 0; i < state.range(0); ++i) {
      dataplane->plan().SetService(std::to_string(i), ServiceNumber(i));
    }
    auto synced = dataplane->Sync();
    if (!synced) return state.SkipWithError(synced.error().message().c_str());
    state.PauseTiming();
    if (SomebodyListens()) state.SetLabel("while somebody listens to nf_tables");
    state.counters["elements"] = static_cast<double>(dataplane->plan().size());
    state.counters["kernel_MiB"] = SettledKernelMemory() - kernel_before;
    state.counters["process_MiB"] = Mebibytes("/proc/self/smaps_rollup", "Anonymous") - process_before;
    dataplane.reset();
    state.ResumeTiming();
  }
}

// A proxy that starts anew and finds everything in place.
void Restart(benchmark::State& state) {
  auto netns = linux::NetNs::Make();
  if (!netns) return state.SkipWithError(netns.error().message().c_str());
  auto first = MakeDataplane(state, *netns);
  if (!first) return;
  for (int i = 0; i < state.range(0); ++i) first->plan().SetService(std::to_string(i), ServiceNumber(i));
  if (auto synced = first->Sync(); !synced) return state.SkipWithError(synced.error().message().c_str());
  for (auto _ : state) {
    auto again = MakeDataplane(state, *netns);
    for (int i = 0; i < state.range(0); ++i) again->plan().SetService(std::to_string(i), ServiceNumber(i));
    auto synced = again->Sync();
    if (!synced || synced->operations != 0) {
      return state.SkipWithError("the restarted proxy changed something");
    }
  }
}

void OneServiceMore(benchmark::State& state) {
  auto netns = linux::NetNs::Make();
  if (!netns) return state.SkipWithError(netns.error().message().c_str());
  auto dataplane = MakeDataplane(state, *netns);
  if (!dataplane) return;
  int next = 0;
  for (; next < state.range(0); ++next) {
    dataplane->plan().SetService(std::to_string(next), ServiceNumber(next));
  }
  if (auto synced = dataplane->Sync(); !synced) return state.SkipWithError(synced.error().message().c_str());
  Times times;
  for (auto _ : state) {
    times.Begin();
    dataplane->plan().SetService(std::to_string(next), ServiceNumber(next));
    if (!dataplane->Sync()) return state.SkipWithError("sync failed");
    times.End(state);
    ++next;
  }
  times.Report(state);
}

// An endpoint of a Service comes and goes, and the kernel has it.
void OneEndpointChanges(benchmark::State& state) {
  auto netns = linux::NetNs::Make();
  if (!netns) return state.SkipWithError(netns.error().message().c_str());
  auto dataplane = MakeDataplane(state, *netns);
  if (!dataplane) return;
  const auto size = static_cast<int>(state.range(0));
  for (int i = 0; i < size; ++i) dataplane->plan().SetService(std::to_string(i), ServiceNumber(i));
  if (auto synced = dataplane->Sync(); !synced) return state.SkipWithError(synced.error().message().c_str());
  Times times;
  for (auto _ : state) {
    const int turn = times.count();
    const int i = turn / 2 % size;
    std::vector<ResolvedPort> ports = ServiceNumber(i);
    if (turn % 2 == 0) ports[0].cluster.pop_back();
    times.Begin();
    dataplane->plan().SetService(std::to_string(i), ports);
    if (!dataplane->Sync()) return state.SkipWithError("sync failed");
    times.End(state);
  }
  times.Report(state);
}

BENCHMARK(FullSync)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(30000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(3);
BENCHMARK(Restart)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);
BENCHMARK(OneEndpointChanges)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(30000)
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK(OneServiceMore)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(50000)
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime()
    ->Iterations(1000);

}  // namespace
}  // namespace keelson::proxy::nftables
