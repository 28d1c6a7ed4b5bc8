#include "kubelet/shutdown/plan.h"

#include <algorithm>

namespace keelson::kubelet {

using std::chrono::seconds;

std::vector<ShutdownPeriod> ShutdownPeriods(const KubeletConfig& config) {
  constexpr int32_t kSystemCritical = 2'000'000'000;
  std::vector<ShutdownPeriod> out = config.shutdown_grace_period_by_pod_priority;
  if (out.empty() && config.shutdown_grace_period > Duration(0) &&
      config.shutdown_grace_period >= config.shutdown_grace_period_critical_pods) {
    const auto critical = std::chrono::duration_cast<seconds>(config.shutdown_grace_period_critical_pods);
    const auto others = std::chrono::duration_cast<seconds>(config.shutdown_grace_period) - critical;
    out.resize(2);
    out[0].priority = 0;
    out[0].seconds = others.count();
    out[1].priority = kSystemCritical;
    out[1].seconds = critical.count();
  }
  std::sort(out.begin(), out.end(),
            [](const ShutdownPeriod& a, const ShutdownPeriod& b) { return a.priority < b.priority; });
  return out;
}

std::vector<ShutdownGroup> GroupByPriority(const std::vector<ShutdownPeriod>& periods,
                                           const std::vector<std::shared_ptr<const corev1::Pod>>& pods) {
  std::vector<ShutdownGroup> out(periods.size());
  for (size_t i = 0; i < periods.size(); ++i) out[i].period = seconds(periods[i].seconds);
  if (periods.empty()) return out;
  for (const auto& pod : pods) {
    const int64_t priority = pod->spec().priority();
    size_t group = 0;
    while (group + 1 < periods.size() && periods[group + 1].priority <= priority) ++group;
    out[group].pods.push_back(pod);
  }
  return out;
}

seconds TotalOf(const std::vector<ShutdownPeriod>& periods) {
  seconds total{0};
  for (const ShutdownPeriod& period : periods) total += seconds(period.seconds);
  return total;
}

seconds GraceIn(const ShutdownGroup& group, const corev1::Pod& pod) {
  if (!pod.spec().has_termination_grace_period_seconds()) return group.period;
  return std::min(group.period, seconds(pod.spec().termination_grace_period_seconds()));
}

}  // namespace keelson::kubelet
