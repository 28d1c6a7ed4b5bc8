// From a change of an EndpointSlice, as an informer tells it, to the kernel having it: through the whole
// proxy but the API, in a network namespace of its own.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <thread>

#include "lib/api/types.h"
#include "proxy/nftables/dataplane.h"
#include "proxy/sync/proxier.h"

namespace keelson::proxy {
namespace {

// Tells when the kernel has taken a transaction.
class ToldKernel : public nft::Kernel {
 public:
  struct Count {
    Mutex mutex;
    CondVar changed;
    int taken KEELSON_GUARDED_BY(mutex) = 0;
  };
  ToldKernel(std::unique_ptr<nft::Kernel> kernel, Count& count) : kernel_(std::move(kernel)), count_(count) {}

  Result<> Apply(const nft::Transaction& transaction) override {
    Result<> done = kernel_->Apply(transaction);
    MutexLock lock(count_.mutex);
    ++count_.taken;
    count_.changed.notify_all();
    return done;
  }
  Result<std::optional<nft::Ruleset>> Read(const nft::Table& table) override { return kernel_->Read(table); }
  Result<bool> HasChain(const nft::Table& table, const std::string& chain) override {
    return kernel_->HasChain(table, chain);
  }
  Result<uint32_t> Generation() override { return kernel_->Generation(); }
  uint32_t port() const override { return kernel_->port(); }

 private:
  std::unique_ptr<nft::Kernel> kernel_;
  Count& count_;
};

corev1::Service MakeService(int i) {
  corev1::Service out;
  out.mutable_spec()->set_cluster_ip(IpAddress::Parse("10.96.0.1")->Plus(i).ToString());
  auto& port = *out.mutable_spec()->add_ports();
  port.set_name("http");
  port.set_port(80);
  return out;
}

discoveryv1::EndpointSlice MakeSlice(int i, int endpoints) {
  discoveryv1::EndpointSlice out;
  out.mutable_metadata()->set_namespace_("ns");
  (*out.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "svc-" + std::to_string(i);
  out.set_address_type("IPv4");
  auto& port = *out.add_ports();
  port.set_name("http");
  port.set_port(8080);
  for (int e = 0; e < endpoints; ++e) {
    out.add_endpoints()->add_addresses(IpAddress::Parse("10.128.0.1")->Plus(i * 3 + e).ToString());
  }
  return out;
}

void EndpointChangeToKernel(benchmark::State& state) {
  auto netns = linux::NetNs::Make();
  if (!netns) return state.SkipWithError(netns.error().message().c_str());
  ToldKernel::Count count;
  Health health(std::chrono::minutes(1), Clock::Real());
  ProxierOptions options{.node_name = "here"};
  Proxier proxier(
      options,
      nftables::Mode({.v4 = true}, {.v4 = false},
                     [&]() -> Result<std::unique_ptr<nft::Kernel>> {
                       KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel(*netns));
                       return std::unique_ptr<nft::Kernel>(
                           std::make_unique<ToldKernel>(std::move(kernel), count));
                     }),
      [](const std::vector<IpAddress>& own) {
        return Result<NodeIps>(NodeIps{own, own});
      },
      [](const std::string&, const char*, const std::string&) {}, health);
  const auto size = static_cast<int>(state.range(0));
  for (int i = 0; i < size; ++i) {
    auto service = MakeService(i);
    auto slice = MakeSlice(i, 3);
    proxier.OnService("ns/svc-" + std::to_string(i), &service);
    proxier.OnSlice("ns/svc-" + std::to_string(i) + "-1", &slice);
  }
  proxier.MarkSynced();
  std::jthread runs([&](std::stop_token stop) { (void)proxier.Run(stop, [] {}); });
  proxier.AwaitFirstSync({});
  std::vector<double> times;
  for (auto _ : state) {
    const auto turn = static_cast<int>(times.size());
    const int i = turn / 2 % size;
    auto slice = MakeSlice(i, turn % 2 == 0 ? 2 : 3);
    int before;
    {
      MutexLock lock(count.mutex);
      before = count.taken;
    }
    auto begin = std::chrono::steady_clock::now();
    proxier.OnSlice("ns/svc-" + std::to_string(i) + "-1", &slice);
    {
      MutexLock lock(count.mutex);
      while (count.taken == before) count.changed.wait(count.mutex);
    }
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  std::sort(times.begin(), times.end());
  state.counters["p50_us"] = times[times.size() / 2] * 1e6;
  state.counters["p99_us"] = times[times.size() * 99 / 100] * 1e6;
}

BENCHMARK(EndpointChangeToKernel)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(30000)
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime()
    ->Iterations(1000);

}  // namespace
}  // namespace keelson::proxy
