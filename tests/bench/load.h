// What load programs share: timed requests over HTTPS from many workers, and what the servers take meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/client/transport.h"
#include "lib/http/client/client.h"

namespace keelson::bench {

std::string Json(std::string_view text);  // with ' for ", for readability

class Servers {
 public:
  explicit Servers(std::vector<int> pids) : pids_(std::move(pids)) {}
  double CpuSeconds() const;    // of all, since they began
  double AnonymousMib() const;  // of the first one

 private:
  std::vector<int> pids_;
};

struct Timing {
  double per_second = 0, p50_ms = 0, p99_ms = 0;
  double cpu_seconds = 0;  // of the servers
};

class LoadClient {  // thread safe
 public:
  LoadClient(client::RestConfig config, std::vector<int> pids)
      : config_(std::move(config)), servers_(std::move(pids)) {}

  http::ClientRequest Request(std::string method, std::string target, std::string body,
                              std::string type = "application/json") const;
  // The body of one response; any status but success is an error.
  Result<std::string> Send(std::string method, std::string target, std::string body = "",
                           std::string type = "application/json") const;
  Result<std::unique_ptr<http::Client>> Connect() const;

  // Calls `one(worker, i)` for 0 <= i < count from all workers, each of which returns bytes, and prints a line:
  //   NAME COUNT PER_SECOND P50_MS P99_MS SERVER_CPU_US_EACH BYTES
  Result<Timing> Measure(const std::string& name, int count, int workers,
                         const std::function<Result<size_t>(int worker, int i)>& one) const;
  // The same for requests; each worker has its connection.
  Result<Timing> MeasureRequests(const std::string& name, int count, int workers,
                                 const std::function<http::ClientRequest(int i)>& make) const;
  // The two, for those who ask for no more than how many there were in a second.
  Result<double> Time(const std::string& name, int count, int workers,
                      const std::function<Result<size_t>(int worker, int i)>& one) const;
  Result<double> TimeRequests(const std::string& name, int count, int workers,
                              const std::function<http::ClientRequest(int i)>& make) const;

  const Servers& servers() const { return servers_; }

 private:
  const client::RestConfig config_;
  const Servers servers_;
};

}  // namespace keelson::bench
