// Requests and watch deliveries through a server on this machine, with TLS. The wall time includes the
// client; `cpu_us` is the CPU time of the whole process per request or delivery.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "lib/crypto/testing/test_pki.h"
#include "lib/http/client/client.h"
#include "lib/http/server/server.h"

namespace keelson::http {
namespace {

double ProcessCpuMicroseconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto us = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

class Fixture {
 public:
  explicit Fixture(Handler handler) {
    ServerOptions options;
    options.tls = crypto::TlsServerOptions{
        pki_.server_cert_file(), pki_.server_key_file(), pki_.ca_file(), "", {"h2", "http/1.1"}};
    server_ = std::move(*Server::Listen(options, std::move(handler)));
    thread_ = std::jthread([this](std::stop_token stop) {
      if (!server_->Run(stop, std::chrono::milliseconds(100))) abort();
    });
  }
  std::unique_ptr<Client> NewClient(bool http2) {
    ClientOptions options;
    options.base_url = "https://127.0.0.1:" + std::to_string(server_->port());
    options.tls.ca_pem = pki_.ca_pem();
    options.http2 = http2;
    return std::move(*Client::Create(options));
  }

 private:
  crypto::TestPki pki_;
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

void Requests(benchmark::State& state) {
  auto body = std::make_shared<const std::string>(static_cast<size_t>(state.range(1)), 'x');
  Fixture fixture([&](auto, auto writer) { writer->ReplyShared(200, {}, {body}); });
  auto client = fixture.NewClient(state.range(0) == 2);
  double before = ProcessCpuMicroseconds();
  for (auto _ : state) {
    if (!client->Do({}, std::chrono::seconds(10))) state.SkipWithError("request failed");
  }
  state.counters["cpu_us"] = (ProcessCpuMicroseconds() - before) / static_cast<double>(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(1));
}
BENCHMARK(Requests)
    ->ArgNames({"http", "bytes"})
    ->Args({1, 100})
    ->Args({2, 100})
    ->Args({1, 10 << 20})
    ->Args({2, 10 << 20})
    ->UseRealTime();

void WatchFanOut(benchmark::State& state) {
  const size_t watchers = static_cast<size_t>(state.range(0));
  std::mutex mutex;
  std::vector<std::shared_ptr<ResponseWriter>> writers;
  Fixture fixture([&](auto, auto writer) {
    writer->Start(200, {});
    std::lock_guard lock(mutex);
    writers.push_back(writer);
  });
  auto client = fixture.NewClient(true);
  std::vector<std::unique_ptr<ResponseReader>> readers;
  for (size_t i = 0; i < watchers; ++i) {
    readers.push_back(std::move(*client->Open({}, std::chrono::seconds(10))));
  }
  const auto event = std::make_shared<const std::string>(3000, 'e');
  double before = ProcessCpuMicroseconds();
  for (auto _ : state) {
    for (auto& writer : writers) writer->Write(event);
    for (auto& reader : readers) {
      for (size_t got = 0; got < event->size();) {
        auto piece = reader->Read({}, std::chrono::seconds(10));
        if (!piece || piece->empty()) return state.SkipWithError("watch ended");
        got += piece->size();
      }
    }
  }
  state.counters["cpu_us"] = (ProcessCpuMicroseconds() - before) / static_cast<double>(state.iterations()) /
                             static_cast<double>(watchers);
  writers.clear();
}
BENCHMARK(WatchFanOut)->ArgName("watchers")->Arg(500)->UseRealTime();

}  // namespace
}  // namespace keelson::http
