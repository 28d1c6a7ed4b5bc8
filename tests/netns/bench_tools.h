// For benchmarks: somebody who reads all that comes, a stream to them, and figures of many tries.
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

// Reads what comes to kSinkPort; a byte says that all of a connection has been read.
class Sink {
 public:
  explicit Sink(const linux::NetNs& place);
  ~Sink();

 private:
  UniqueFd listener_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
  std::thread thread_;
};

// 64 MiB in one stream from the client to a sink: seconds.
Result<double> Stream(const PathBench& bench, const IpAddress& ip, uint16_t port);

}  // namespace keelson::netns
