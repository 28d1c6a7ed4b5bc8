// For benchmarks: a sink, a stream to it, and percentiles.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/netns/bench_paths.h"

namespace keelson::netns {

sockaddr_in BenchAddress(const IpAddress& ip, uint16_t port);
Result<UniqueFd> SocketIn(const linux::NetNs& place);
double Since(std::chrono::steady_clock::time_point begin);  // seconds
double Percentile(std::vector<double> values, int percent);

// Reads all data on kSinkPort; answers one byte when a connection is read completely.
class Sink {
 public:
  explicit Sink(const linux::NetNs& place);
  ~Sink();

 private:
  UniqueFd listener_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
  std::thread thread_;
};

// Sends 64 MiB in one stream from the client to a sink; returns seconds.
Result<double> Stream(const PathBench& bench, const IpAddress& ip, uint16_t port);

}  // namespace keelson::netns
