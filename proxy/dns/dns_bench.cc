// What one answer from memory costs, without sockets and by UDP, and one change of the zone.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include <thread>

#include "lib/api/types.h"
#include "lib/base/socket_address.h"
#include "proxy/dns/responder.h"
#include "proxy/dns/testing/messages.h"
#include "proxy/dns/udp_server.h"

namespace keelson::proxy::dns {
namespace {

class NoAsker : public Asker {
 public:
  bool tcp() const override { return false; }
  bool v4() const override { return true; }
  std::function<void(std::string_view)> Later() override {
    return [](std::string_view) {};
  }
};

corev1::Service MakeService(int i) {
  corev1::Service out;
  out.mutable_spec()->set_type("ClusterIP");
  out.mutable_spec()->set_cluster_ip(IpAddress::Parse("10.96.0.0")->Plus(i).ToString());
  auto& port = *out.mutable_spec()->add_ports();
  port.set_name("http");
  port.set_port(80 + i % 2);
  return out;
}

Zone MakeZone(int services) {
  Zone zone = *Zone::Create({});
  for (int i = 0; i < services; ++i) {
    corev1::Service service = MakeService(i);
    zone.UpdateService("default/s-" + std::to_string(i), &service);
  }
  return zone;
}

void Answer(benchmark::State& state, const std::string& suffix, uint16_t type) {
  const int services = static_cast<int>(state.range(0));
  Zone zone = MakeZone(services);
  Responder responder(nullptr, Clock::Real());
  responder.SetZone(zone.Commit());
  std::vector<std::string> packets;
  for (int i = 0; i < 1000; ++i) {
    packets.push_back(QueryPacket("s-" + std::to_string(i * 7 % services) + suffix, type, {.edns = true}));
  }
  NoAsker asker;
  std::vector<char> buffer(kMaxUdpSize);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(responder.Handle(packets[next++ % packets.size()], asker, buffer));
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_Address(benchmark::State& state) { Answer(state, ".default.svc.cluster.local", kTypeA); }
void BM_NoData(benchmark::State& state) { Answer(state, ".default.svc.cluster.local", kTypeAaaa); }
void BM_NoName(benchmark::State& state) { Answer(state, ".example.com.default.svc.cluster.local", kTypeA); }

double CpuSeconds(std::thread::native_handle_type thread) {
  clockid_t clock;
  timespec now{};
  pthread_getcpuclockid(thread, &clock);
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// `server_us`: CPU time of the server's thread a query, the kernel's part included. 32 clients at a time.
void BM_Udp(benchmark::State& state) {
  constexpr int kWindow = 32;
  Zone zone = MakeZone(static_cast<int>(state.range(0)));
  Responder responder(nullptr, Clock::Real());
  responder.SetZone(zone.Commit());
  const IpAddress localhost = *IpAddress::Parse("127.0.0.1");
  std::unique_ptr<UdpServer> server = std::move(*UdpServer::Create({{localhost, 0}}, responder));
  std::jthread thread([&](std::stop_token stop) { (void)server->Run(stop); });
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress address(localhost, server->ports()[0]);
  if (::connect(fd.get(), address.get(), address.size()) != 0) return state.SkipWithError("connect");
  std::string packet = QueryPacket("s-7.default.svc.cluster.local", kTypeA, {.edns = true});
  char buffer[kMaxUdpSize];
  double before = CpuSeconds(thread.native_handle());
  for (auto _ : state) {
    for (int i = 0; i < kWindow; ++i) ::send(fd.get(), packet.data(), packet.size(), 0);
    for (int i = 0; i < kWindow; ++i) ::recv(fd.get(), buffer, sizeof buffer, 0);
  }
  double queries = static_cast<double>(state.iterations()) * kWindow;
  state.counters["server_us"] = (CpuSeconds(thread.native_handle()) - before) * 1e6 / queries;
  state.SetItemsProcessed(state.iterations() * kWindow);
}

void BM_Change(benchmark::State& state) {
  const int services = static_cast<int>(state.range(0));
  Zone zone = MakeZone(services);
  std::shared_ptr<const Snapshot> last = zone.Commit();
  for (int i = 1; auto _ : state) {
    corev1::Service service = MakeService(i++);
    zone.UpdateService("default/s-1", &service);
    last = zone.Commit();
  }
}

discoveryv1::EndpointSlice MakeSlice(int i) {
  discoveryv1::EndpointSlice out;
  out.set_address_type("IPv4");
  out.mutable_metadata()->set_namespace_("default");
  (*out.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "s-" + std::to_string(i);
  for (int j = 0; j < 3; ++j) {
    out.add_endpoints()->add_addresses(IpAddress::Parse("10.0.0.0")->Plus(3 * i + j).ToString());
  }
  auto& port = *out.add_ports();
  port.set_name("http");
  port.set_port(8080);
  return out;
}

// `bytes`: of the heap, a Service with three endpoints.
void BM_Memory(benchmark::State& state) {
  const int services = static_cast<int>(state.range(0));
  double bytes = 0;
  for (auto _ : state) {
    const size_t before = mallinfo2().uordblks;
    Zone zone = MakeZone(services);
    for (int i = 0; i < services; ++i) {
      const discoveryv1::EndpointSlice slice = MakeSlice(i);
      zone.UpdateSlice("default/s-" + std::to_string(i) + "-abcde", &slice);
    }
    auto snapshot = zone.Commit();
    bytes = static_cast<double>(mallinfo2().uordblks - before) / services;
    benchmark::DoNotOptimize(snapshot);
  }
  state.counters["bytes"] = bytes;
}

BENCHMARK(BM_Address)->Arg(100)->Arg(30000);
BENCHMARK(BM_NoData)->Arg(30000);
BENCHMARK(BM_NoName)->Arg(30000);
BENCHMARK(BM_Udp)->Arg(30000)->UseRealTime();
BENCHMARK(BM_Change)->Arg(100)->Arg(30000);
BENCHMARK(BM_Memory)->Arg(10000);

}  // namespace
}  // namespace keelson::proxy::dns
