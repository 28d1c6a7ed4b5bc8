// Rotates the logs of running containers: a log beyond max_size becomes <log>.<time>, older parts are compressed,
// and parts beyond max_files are removed.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

struct LogRotationOptions {
  int64_t max_size = 10 << 20;  // negative: logs are not rotated
  int max_files = 5;            // including the current one
  int workers = 1;
  std::chrono::milliseconds interval{std::chrono::seconds(10)};
};

// What to do with the older parts of a log. Pure.
struct LogPlan {
  std::vector<std::string> remove, compress;
};
// `names`: the files <log>.*.
LogPlan PlanLogs(std::vector<std::string> names, int max_files);

// Of a running container.
struct ContainerLog {
  std::string container_id, path;
};

class LogRotator {
 public:
  using Running = std::function<std::vector<ContainerLog>()>;
  LogRotator(cri::RuntimeService& runtime, Running running, const LogRotationOptions& options, Clock& clock)
      : runtime_(runtime), running_(std::move(running)), options_(options), clock_(clock) {}

  // One pass over all running containers. Failures are logged, and do not stop the pass.
  void RotateAll(std::stop_token stop);
  void Run(std::stop_token stop);

 private:
  Result<> Rotate(const std::string& id, const std::string& log, std::stop_token stop);

  cri::RuntimeService& runtime_;
  const Running running_;
  const LogRotationOptions options_;
  Clock& clock_;
};

}  // namespace keelson::kubelet
