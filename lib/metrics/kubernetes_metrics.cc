#include "lib/metrics/kubernetes_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

namespace keelson::metrics {
namespace {

using Table = std::span<const KubernetesMetric>;

double Number(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

}  // namespace

std::string_view StabilityName(Stability stability) {
  constexpr std::string_view kNames[] = {"INTERNAL", "ALPHA", "BETA", "STABLE"};
  return kNames[static_cast<size_t>(stability)];
}

std::vector<const KubernetesMetric*> MetricsOf(Component component) {
  constexpr Table (*kTables[])() = {MetricsOfApiserver, MetricsOfControllers, MetricsOfScheduler,
                                    MetricsOfKubelet, MetricsOfProxy};
  std::vector<const KubernetesMetric*> out;
  for (const Table& table : {kTables[static_cast<size_t>(component)](), MetricsOfCommon()}) {
    for (const KubernetesMetric& metric : table) out.push_back(&metric);
  }
  return out;
}

const KubernetesMetric* FindKubernetesMetric(std::string_view name) {
  static const auto* by_name = [] {
    auto* all = new std::unordered_map<std::string_view, const KubernetesMetric*>;
    for (const Table& table : {MetricsOfApiserver(), MetricsOfControllers(), MetricsOfScheduler(),
                               MetricsOfKubelet(), MetricsOfProxy(), MetricsOfCommon()}) {
      for (const KubernetesMetric& metric : table) all->emplace(metric.name, &metric);
    }
    return all;
  }();
  const auto it = by_name->find(name);
  return it == by_name->end() ? nullptr : it->second;
}

std::vector<double> BucketsOf(const KubernetesMetric& metric) {
  std::vector<double> out;
  const std::string_view text = metric.buckets;
  if (const size_t factor = text.find('*'); factor != std::string_view::npos) {
    const size_t count = text.find('^');
    double bound = Number(text.substr(0, factor));
    const double by = Number(text.substr(factor + 1, count - factor - 1));
    for (auto left = static_cast<int>(Number(text.substr(count + 1))); left > 0; --left, bound *= by) {
      out.push_back(bound);
    }
    return out;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    out.push_back(Number(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

std::string HelpWithStability(std::string_view name, std::string_view help) {
  const KubernetesMetric* metric = FindKubernetesMetric(name);
  if (!metric || help.starts_with('[')) return std::string(help);
  const std::string_view stability = StabilityName(metric->stability);
  if (metric->deprecated.empty()) return fmt::format("[{}] {}", stability, help);
  return fmt::format("[{}] (Deprecated since {}) {}", stability, metric->deprecated, help);
}

}  // namespace keelson::metrics
