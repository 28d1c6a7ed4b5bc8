// Volumes that are file systems of their own, such as those of servers elsewhere. Who looks at the mount of
// one that is away waits for as long as it is, and nothing can end that: each is looked at by a thread of its
// own, and what was found last is told.
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
  using Measure = std::function<FsUsage(const std::string& path)>;
  // Figures are measured anew when they are older than `period`. `patience`: how long the first look waits
  // for what it has begun.
  SlowVolumes(Measure measure, std::chrono::nanoseconds period, Clock& clock,
              std::chrono::milliseconds patience = std::chrono::milliseconds(500));

  // nullopt: it has never been measured.
  std::optional<FsUsage> Latest(const std::string& path);
  // Drops what has not been asked for that long.
  void Forget(std::chrono::nanoseconds unasked);

 private:
  struct State;  // outlives us where a measurement hangs
  const Measure measure_;
  const std::chrono::nanoseconds period_;
  Clock& clock_;
  const std::chrono::milliseconds patience_;
  std::shared_ptr<State> state_;
};

}  // namespace keelson::kubelet
