// Eviction thresholds.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// Bytes, inodes or processes, or a percentage of the capacity.
struct ThresholdValue {
  int64_t quantity = 0;
  double percent = 0;  // as a fraction; above zero: counts instead of `quantity`
  std::string text;    // as configured
  int64_t Of(int64_t capacity) const;
};

struct Threshold {
  std::string signal;  // memory.available, nodefs.inodesFree, ...
  ThresholdValue value;
  std::chrono::milliseconds grace{0};  // of soft thresholds
  bool soft = false;
  std::optional<ThresholdValue> min_reclaim;  // beyond the threshold, once reclaiming
  bool operator==(const Threshold& other) const {
    return signal == other.signal && soft == other.soft && value.text == other.value.text;
  }
};

struct EvictionOptions {
  std::map<std::string, std::string> hard, soft, soft_grace_period, minimum_reclaim;
  std::chrono::milliseconds pressure_transition_period{std::chrono::minutes(5)};
  int max_pod_grace_period = 0;     // seconds; soft thresholds only
  bool enforce_allocatable = true;  // enforceNodeAllocatable has pods: watch their limit too
  bool local_storage = true;        // enforce limits of ephemeral storage and emptyDir
};

// kInvalid, with upstream's message.
Result<std::vector<Threshold>> ParseThresholds(const EvictionOptions& options);

enum class Pressure { kMemory, kDisk, kPid };
// nullopt: unknown signal.
std::optional<Pressure> PressureOf(const std::string& signal);
const char* ConditionOf(Pressure pressure);  // MemoryPressure, ...
// memory, ephemeral-storage, inodes, pids: as in messages.
std::string ResourceOfSignal(const std::string& signal);

}  // namespace keelson::kubelet
