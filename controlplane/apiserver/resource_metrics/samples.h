// Parses a kubelet's /metrics/resource, and computes usage from two samples. Pure functions.
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
  WallTime start{};        // of the container; the epoch when unknown
  double cpu_seconds = 0;  // since start
  int64_t memory_bytes = 0;
};

template <typename T>
using ByContainer =
    std::map<std::string, std::map<std::string, T, std::less<>>, std::less<>>;  // by "ns/pod", then container

struct UsageSample {
  UsagePoint node;
  ByContainer<UsagePoint> pods;
};

// Skips containers without CPU or memory: they have ended. `now`: the time of metrics without a timestamp.
// Error when the node's own metrics are missing.
Result<UsageSample> ParseResourceMetrics(std::string_view text, WallTime now);

// The last point, and the one before it for the CPU rate.
struct UsageTrack {
  UsagePoint last;
  std::optional<UsagePoint> before;
};

struct NodeUsage {
  UsageTrack node;
  ByContainer<UsageTrack> pods;
};

// Merges a new sample. A restarted container starts over; a container younger than `period` gets its rate
// from its start, once it is old enough for a meaningful rate.
NodeUsage Advance(const NodeUsage* known, UsageSample sample, std::chrono::nanoseconds period);

struct Usage {
  WallTime time;                    // end of the window
  std::chrono::nanoseconds window;  // length of the window
  int64_t nano_cores = 0, memory_bytes = 0;
};
std::optional<Usage> UsageOf(const UsageTrack& track);

}  // namespace keelson::apiserver
