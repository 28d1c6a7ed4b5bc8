// Prometheus text, shared by /metrics/resource and /metrics/cadvisor.
#pragma once

#include <fmt/format.h>

#include <string>

#include "kubelet/stats/provider.h"

namespace keelson::kubelet {

inline int64_t Millis(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Writes families one after another; the header of an empty one is left out.
class MetricsText {
 public:
  void Family(const char* name, const char* type, const std::string& help) {
    header_ = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
    name_ = name;
  }
  void Add(const std::string& labels, double value, int64_t millis = 0) {
    out_ += std::exchange(header_, "");
    out_ += name_;
    if (!labels.empty()) out_ += "{" + labels + "}";
    out_ += fmt::format(" {}", value);
    if (millis > 0) out_ += fmt::format(" {}", millis);
    out_ += '\n';
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_, header_;
  const char* name_ = "";
};

inline double Seconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e9; }

inline std::string PodLabels(const PodUsageStats& pod) {
  const metav1::ObjectMeta& meta = pod.pod->metadata();
  return fmt::format("namespace=\"{}\",pod=\"{}\"", meta.namespace_(), meta.name());
}

// Calls `each` for each container, with the time of its sample in milliseconds.
template <typename Each>
void EachContainer(const StatsSnapshot& stats, Each each) {
  for (const PodUsageStats& pod : stats.pods) {
    for (const ContainerUsageStats& container : pod.containers) {
      each(pod, container, container.runtime.timestamp / 1000000);
    }
  }
}

}  // namespace keelson::kubelet
