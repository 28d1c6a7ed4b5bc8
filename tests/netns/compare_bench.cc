// Compares the modes nftables and ebpf: two worlds in one run, in turn, each directly and through a Service.
// Disturbances affect all four alike; compares medians of many short rounds.
#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include <map>
#include <string>

#include "tests/netns/bench_tools.h"

namespace keelson::netns {
namespace {

constexpr int kRounds = 60, kTries = 50, kStreamRounds = 24;

struct Side {
  std::string name;
  PathBench bench;
  std::unique_ptr<Sink> sink;
};

class Figures {
 public:
  void Add(const std::string& what, double value) { all_[what].push_back(value); }
  // Of the rounds' own figures: one that was disturbed is one of many.
  void Report(benchmark::State& state) {
    for (const auto& [what, values] : all_) state.counters[what] = Percentile(values, 50);
  }

 private:
  std::map<std::string, std::vector<double>> all_;
};

// One connection with its greeting: seconds until connected, and until greeted.
Result<std::pair<double, double>> Exchange(const sockaddr_in& to) {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  const auto begin = std::chrono::steady_clock::now();
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return ErrnoError("connect");
  }
  const double connected = Since(begin);
  char buffer[64];
  if (::recv(fd.get(), buffer, sizeof buffer, 0) <= 0) return ErrnoError("receive");
  return std::pair(connected, Since(begin));
}

// kTries of them on a thread that is in the pod.
Result<> Round(const Side& side, bool service, Figures& out) {
  const sockaddr_in to = service ? BenchAddress(side.bench.question.to, side.bench.question.port)
                                 : BenchAddress(EndpointAddress("pod2", true), kEndpointPort);
  std::vector<double> connects, exchanges;
  KEELSON_RETURN_IF_ERROR(side.bench.world->Place("pod1").Run([&]() -> Result<> {
    for (int i = 0; i < kTries; ++i) {
      KEELSON_ASSIGN_OR_RETURN(auto took, Exchange(to));
      connects.push_back(took.first);
      exchanges.push_back(took.second);
    }
    return {};
  }));
  const std::string of = side.name + (service ? "_service" : "_direct");
  double all = 0;
  for (double one : exchanges) all += one;
  out.Add(of + "_connect_p50_us", Percentile(connects, 50) * 1e6);
  out.Add(of + "_connect_p99_us", Percentile(connects, 99) * 1e6);
  out.Add(of + "_exchange_p50_us", Percentile(exchanges, 50) * 1e6);
  out.Add(of + "_connections_s", kTries / all);
  return {};
}

Result<> StreamRound(const Side& side, bool service, Figures& out) {
  KEELSON_ASSIGN_OR_RETURN(double took, service
                                            ? Stream(side.bench, side.bench.sink.to, side.bench.sink.port)
                                            : Stream(side.bench, EndpointAddress("pod2", true), kSinkPort));
  out.Add(side.name + (service ? "_service_GiB_s" : "_direct_GiB_s"), 0.0625 / took);
  return {};
}

Result<> Compare(int size, Figures& out) {
  std::vector<Side> sides;
  for (Path path : {kKeelson, kEbpf}) {
    Side& side = sides.emplace_back();
    side.name = path == kEbpf ? "ebpf" : "nftables";
    KEELSON_ASSIGN_OR_RETURN(side.bench, PreparePath(path, size));
    side.sink = std::make_unique<Sink>(side.bench.world->Place("pod2"));
  }
  const ServiceWorld& served = *sides[1].bench.world;
  for (int round = 0; round < kRounds; ++round) {
    for (const Side& side : sides) {
      served.Become(side.name == "ebpf" ? "pod1" : "outside");  // whose sockets the programs serve
      for (bool service : {round % 2 == 0, round % 2 != 0}) {
        KEELSON_RETURN_IF_ERROR(Round(side, service, out));
        if (round < kStreamRounds) KEELSON_RETURN_IF_ERROR(StreamRound(side, service, out));
      }
    }
  }
  return {};
}

void SideBySide(benchmark::State& state) {
  for (auto _ : state) {
    Figures figures;
    Result<> done = Compare(static_cast<int>(state.range(0)), figures);
    if (!done) return state.SkipWithError(done.error().message().c_str());
    figures.Report(state);
  }
}
BENCHMARK(SideBySide)
    ->ArgName("services")
    ->Arg(1)
    ->Arg(5000)
    ->Arg(30000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace keelson::netns
