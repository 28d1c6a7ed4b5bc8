// What a kubelet's /metrics/resource says, and what two looks at it tell of usage. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

struct UsagePoint {
  WallTime time;
  WallTime start{};        // of the container; the epoch when it is not known
  double cpu_seconds = 0;  // since then
  int64_t memory_bytes = 0;
};

template <typename T>
using ByContainer =
    std::map<std::string, std::map<std::string, T, std::less<>>, std::less<>>;  // "ns/pod" first

struct UsageSample {
  UsagePoint node;
  ByContainer<UsagePoint> pods;
};

// Containers of which CPU or memory is missing have ended and are left out. `now` is the time of what comes
// without one. An error when nothing is said of the node itself.
Result<UsageSample> ParseResourceMetrics(std::string_view text, WallTime now);

// The last point, and the one before that its rate is taken from.
struct UsageTrack {
  UsagePoint last;
  std::optional<UsagePoint> before;
};

struct NodeUsage {
  UsageTrack node;
  ByContainer<UsageTrack> pods;
};

// What is known after a new sample. A container that has started again begins anew; one younger than `period`
// has a rate from its start on, once that is long enough ago to mean something.
NodeUsage Advance(const NodeUsage* known, UsageSample sample, std::chrono::nanoseconds period);

struct Usage {
  WallTime time;                    // end of the window
  std::chrono::nanoseconds window;  // how long was measured
  int64_t nano_cores = 0, memory_bytes = 0;
};
std::optional<Usage> UsageOf(const UsageTrack& track);

}  // namespace keelson::apiserver
