// Usage of volumes with their own file systems, such as NFS. statfs(2) of a server that is away blocks, and cannot be
// interrupted: each volume is measured on its own thread, and the last result is returned.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/stats/fs_usage.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

class SlowVolumes {  // thread safe
 public:
  // nullopt: the volume cannot be measured.
  using Measure = std::function<std::optional<FsUsage>(const std::string& path)>;
  // Results older than `period` are measured again. `patience`: how long the first call waits for its measurement.
  SlowVolumes(Measure measure, std::chrono::nanoseconds period, Clock& clock,
              std::chrono::milliseconds patience = std::chrono::milliseconds(500));

  // The last result; starts a measurement if that is old. nullopt: never measured, or cannot be.
  std::optional<FsUsage> Latest(const std::string& path);
  // Drops volumes without a reader during that time.
  void Forget(std::chrono::nanoseconds unasked);

 private:
  struct State;  // outlives this object if a measurement hangs
  const Measure measure_;
  const std::chrono::nanoseconds period_;
  Clock& clock_;
  const std::chrono::milliseconds patience_;
  std::shared_ptr<State> state_;
};

}  // namespace keelson::kubelet
