// The cost of a Service for a connection, between pods on one node, or from outside to a pod on another node:
// connect(), requests and responses, and a stream; and the cost of one change for the proxy.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "tests/netns/bench_tools.h"

namespace keelson::netns {
namespace {

// Directly and through the Service in turn, so that disturbances affect both alike.
class Pair {
 public:
  void Add(bool service, double seconds) { times_[service].push_back(seconds); }
  void Report(benchmark::State& state) {
    for (bool service : {false, true}) {
      std::vector<double>& times = times_[service];
      if (times.empty()) return;
      std::sort(times.begin(), times.end());
      const std::string of = service ? "service" : "direct";
      state.counters[of + "_p50_us"] = times[times.size() / 2] * 1e6;
      state.counters[of + "_p99_us"] = times[times.size() * 99 / 100] * 1e6;
    }
  }

 private:
  std::vector<double> times_[2];
};

// Only the system call; then resets the connection, so that none stays in TIME_WAIT.
void Connect(benchmark::State& state, bool outside) {
  auto bench = PreparePath(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)), outside);
  if (!bench) return state.SkipWithError(bench.error().message().c_str());
  Sink sink(bench->world->Place(bench->server));
  const sockaddr_in to[] = {BenchAddress(EndpointAddress(bench->server, true), kSinkPort),
                            BenchAddress(bench->sink.to, bench->sink.port)};
  const linger reset{.l_onoff = 1, .l_linger = 0};
  Pair pair;
  Result<> done = bench->world->Place(bench->client).Run([&]() -> Result<> {
    for (auto _ : state) {
      for (bool service : {false, true}) {
        UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        auto begin = std::chrono::steady_clock::now();
        if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to[service]), sizeof to[0]) != 0) {
          return ErrnoError("connect");
        }
        const double took = Since(begin);
        pair.Add(service, took);
        if (service) state.SetIterationTime(took);
        ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      }
    }
    return {};
  });
  if (!done) return state.SkipWithError(done.error().message().c_str());
  pair.Report(state);
}

void RequestResponse(benchmark::State& state, bool outside) {
  auto bench = PreparePath(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)), outside);
  if (!bench) return state.SkipWithError(bench.error().message().c_str());
  Question direct = bench->question;
  direct.to = EndpointAddress(bench->server, true);
  direct.port = kEndpointPort;
  std::vector<Conversation> open;
  for (const Question& question : {direct, bench->question}) {
    auto one = Conversation::Open(bench->world->Place(bench->client), question);
    if (!one) return state.SkipWithError(one.error().message().c_str());
    open.push_back(std::move(*one));
  }
  Pair pair;
  for (auto _ : state) {
    for (bool service : {false, true}) {
      auto begin = std::chrono::steady_clock::now();
      if (!open[service].Echoes()) return state.SkipWithError("no echo");
      const double took = Since(begin);
      pair.Add(service, took);
      if (service) state.SetIterationTime(took);
    }
  }
  pair.Report(state);
}

void Throughput(benchmark::State& state, bool outside) {
  auto bench = PreparePath(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)), outside);
  if (!bench) return state.SkipWithError(bench.error().message().c_str());
  Sink sink(bench->world->Place(bench->server));
  std::vector<double> rates[2];
  for (auto _ : state) {
    for (bool service : {false, true}) {
      Result<double> took = service ? Stream(*bench, bench->sink.to, bench->sink.port)
                                    : Stream(*bench, EndpointAddress(bench->server, true), kSinkPort);
      if (!took) return state.SkipWithError(took.error().message().c_str());
      rates[service].push_back(0.0625 / *took);
      if (service) state.SetIterationTime(*took);
    }
  }
  for (bool service : {false, true}) {
    std::sort(rates[service].begin(), rates[service].end());
    state.counters[service ? "service_GiB_s" : "direct_GiB_s"] = rates[service][rates[service].size() / 2];
  }
}

// An endpoint of one Service comes or goes.
void Change(benchmark::State& state) {
  auto bench = PreparePath(static_cast<Path>(state.range(0)), static_cast<int>(state.range(1)));
  if (!bench) return state.SkipWithError(bench.error().message().c_str());
  std::vector<proxy::ResolvedPort> services = BenchServices(2);
  proxy::ResolvedPort& port = services.back();
  std::vector<double> times;
  for (auto _ : state) {
    if (port.cluster.size() == 3) {
      port.cluster.pop_back();
    } else {
      port.cluster.push_back({IpAddress::Parse("10.64.0.1")->Plus(5), 80});
    }
    auto begin = std::chrono::steady_clock::now();
    bench->plane->SetService(std::to_string(services.size() - 1), {port});
    Result<> synced = bench->plane->Sync();
    times.push_back(Since(begin));
    if (!synced) return state.SkipWithError(synced.error().message().c_str());
    state.SetIterationTime(times.back());
  }
  std::sort(times.begin(), times.end());
  state.counters["p50_us"] = times[times.size() / 2] * 1e6;
  state.counters["p99_us"] = times[times.size() * 99 / 100] * 1e6;
  state.counters["load_ms"] = bench->load_ms;
}

void Sized(benchmark::internal::Benchmark* bench, int iterations) {
  bench->ArgNames({"path", "services"})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(iterations);
  for (Path path : {kKeelson, kEbpf}) {
    for (int size : {1, 5000, 30000}) bench->Args({path, size});
  }
}
void Outside(benchmark::internal::Benchmark* bench, int iterations) {
  bench->ArgNames({"path", "services"})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(iterations);
  for (Path path : {kKeelson, kEbpf, kEbpfDirect}) {
    for (int size : {1, 5000}) bench->Args({path, size});
  }
}
BENCHMARK_CAPTURE(Connect, pods, false)->Apply([](auto* b) { Sized(b, 5000); });
BENCHMARK_CAPTURE(RequestResponse, pods, false)->Apply([](auto* b) { Sized(b, 10000); });
BENCHMARK_CAPTURE(Throughput, pods, false)->Apply([](auto* b) { Sized(b, 24); });
BENCHMARK_CAPTURE(Connect, outside, true)->Apply([](auto* b) { Outside(b, 5000); });
BENCHMARK_CAPTURE(RequestResponse, outside, true)->Apply([](auto* b) { Outside(b, 10000); });
BENCHMARK_CAPTURE(Throughput, outside, true)->Apply([](auto* b) { Outside(b, 24); });
BENCHMARK(Change)->Apply([](auto* b) { Sized(b, 400); });

}  // namespace
}  // namespace keelson::netns
