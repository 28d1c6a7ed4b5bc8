#include "kubelet/eviction/thresholds.h"

#include <algorithm>
#include <cstdlib>

#include "lib/api/duration.h"
#include "lib/api/quantity.h"

namespace keelson::kubelet {

namespace {

struct Signal {
  const char* name;
  Pressure pressure;
  const char* resource;
};

const Signal kSignals[] = {
    {"memory.available", Pressure::kMemory, "memory"},
    {"allocatableMemory.available", Pressure::kMemory, "memory"},
    {"nodefs.available", Pressure::kDisk, "ephemeral-storage"},
    {"nodefs.inodesFree", Pressure::kDisk, "inodes"},
    {"imagefs.available", Pressure::kDisk, "ephemeral-storage"},
    {"imagefs.inodesFree", Pressure::kDisk, "inodes"},
    {"containerfs.available", Pressure::kDisk, "ephemeral-storage"},
    {"containerfs.inodesFree", Pressure::kDisk, "inodes"},
    {"pid.available", Pressure::kPid, "pids"},
};

const Signal* FindSignal(const std::string& name) {
  for (const Signal& signal : kSignals) {
    if (name == signal.name) return &signal;
  }
  return nullptr;
}

Result<ThresholdValue> ParseValue(const std::string& signal, const std::string& text) {
  ThresholdValue value;
  value.text = text;
  if (!text.empty() && text.back() == '%') {
    char* end = nullptr;
    value.percent = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size() - 1) {
      return Error(Code::kInvalid,
                   "strconv.ParseFloat: parsing \"" + text.substr(0, text.size() - 1) + "\": invalid syntax");
    }
    if (value.percent < 0) {
      return Error(Code::kInvalid, "eviction percentage threshold " + signal + " must be >= 0%: " + text);
    }
    if (value.percent > 100) {
      return Error(Code::kInvalid, "eviction percentage threshold " + signal + " must be <= 100%: " + text);
    }
    return value;
  }
  auto amount = api::Amount::Parse(text);
  if (!amount) return amount.error();
  value.quantity = amount->Value();
  if (value.quantity < 0) {
    return Error(Code::kInvalid, "eviction threshold " + signal + " must be positive: " + text);
  }
  return value;
}

// A threshold of 0% or 100% is switched off.
bool IsOff(const ThresholdValue& value) { return value.text == "0%" || value.text == "100%"; }

Result<std::vector<Threshold>> ParseOne(const std::map<std::string, std::string>& from, bool soft) {
  std::vector<Threshold> out;
  for (const auto& [signal, text] : from) {
    if (!FindSignal(signal)) return Error(Code::kInvalid, "unsupported eviction signal " + signal);
    Threshold threshold;
    threshold.signal = signal;
    threshold.soft = soft;
    KEELSON_ASSIGN_OR_RETURN(threshold.value, ParseValue(signal, text));
    if (!IsOff(threshold.value)) out.push_back(std::move(threshold));
  }
  return out;
}

Result<> SetGracePeriods(const std::map<std::string, std::string>& periods, std::vector<Threshold>& soft) {
  for (const auto& [signal, text] : periods) {
    if (!FindSignal(signal)) return Error(Code::kInvalid, "unsupported eviction signal " + signal);
    auto nanos = api::ParseGoDuration(text);
    if (!nanos) return nanos.error();
    if (*nanos < 0) {
      return Error(Code::kInvalid,
                   "invalid eviction grace period specified: " + signal + ", must be a positive value");
    }
    for (Threshold& threshold : soft) {
      if (threshold.signal == signal) {
        threshold.grace =
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(*nanos));
      }
    }
  }
  for (const Threshold& threshold : soft) {
    if (!periods.count(threshold.signal)) {
      return Error(Code::kInvalid,
                   "grace period must be specified for the soft eviction threshold " + threshold.signal);
    }
  }
  return {};
}

Result<std::map<std::string, ThresholdValue>> ParseReclaims(const std::map<std::string, std::string>& from) {
  std::map<std::string, ThresholdValue> out;
  for (const auto& [signal, text] : from) {
    if (!FindSignal(signal)) return Error(Code::kInvalid, "unsupported eviction signal " + signal);
    auto value = ParseValue(signal, text);
    if (!text.empty() && text.back() == '%' && (!value || value->percent <= 0)) {
      return Error(Code::kInvalid,
                   "eviction percentage minimum reclaim " + signal + " must be positive: " + text);
    }
    if (!value && text.starts_with('-')) {
      return Error(Code::kInvalid, "negative eviction minimum reclaim specified for " + signal);
    }
    if (!value) return value.error();
    out[signal] = *value;
  }
  return out;
}

}  // namespace

int64_t ThresholdValue::Of(int64_t capacity) const {
  return percent > 0 ? static_cast<int64_t>(static_cast<double>(capacity) * percent / 100) : quantity;
}

std::optional<Pressure> PressureOf(const std::string& signal) {
  const Signal* found = FindSignal(signal);
  return found ? std::optional<Pressure>(found->pressure) : std::nullopt;
}

const char* ConditionOf(Pressure pressure) {
  return pressure == Pressure::kMemory ? "MemoryPressure"
         : pressure == Pressure::kDisk ? "DiskPressure"
                                       : "PIDPressure";
}

std::string ResourceOfSignal(const std::string& signal) {
  const Signal* found = FindSignal(signal);
  return found ? found->resource : "";
}

Result<std::vector<Threshold>> ParseThresholds(const EvictionOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<Threshold> out, ParseOne(options.hard, false));
  KEELSON_ASSIGN_OR_RETURN(std::vector<Threshold> soft, ParseOne(options.soft, true));
  KEELSON_RETURN_IF_ERROR(SetGracePeriods(options.soft_grace_period, soft));
  KEELSON_ASSIGN_OR_RETURN(const auto reclaims, ParseReclaims(options.minimum_reclaim));
  for (std::vector<Threshold>* thresholds : {&out, &soft}) {
    for (Threshold& threshold : *thresholds) {
      if (auto reclaim = reclaims.find(threshold.signal); reclaim != reclaims.end()) {
        threshold.min_reclaim = reclaim->second;
      }
    }
  }
  if (options.enforce_allocatable) {
    auto memory = std::find_if(out.begin(), out.end(),
                               [](const Threshold& item) { return item.signal == "memory.available"; });
    if (memory != out.end()) {
      Threshold pods = *memory;
      pods.signal = "allocatableMemory.available";
      out.push_back(std::move(pods));
    }
  }
  out.insert(out.end(), soft.begin(), soft.end());
  return out;
}

}  // namespace keelson::kubelet
