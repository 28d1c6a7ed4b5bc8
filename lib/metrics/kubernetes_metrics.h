// The metrics of Kubernetes 1.36: name, type, stability, labels and buckets of what each component serves.
// /metrics tells the stability from it (docs of Kubernetes: "Kubernetes Metrics Reference"), and tests hold
// each component to it (lib/metrics/conformance.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::metrics {

enum class Stability : uint8_t { kInternal, kAlpha, kBeta, kStable };
// kAny: made by a collector of its own, upstream's list does not say of what type.
enum class Kind : uint8_t { kCounter, kGauge, kHistogram, kSummary, kAny };

struct KubernetesMetric {
  std::string_view name;
  Kind kind;
  Stability stability;
  std::string_view labels;  // sorted, comma separated, constant ones too
  std::string_view
      buckets{};  // "0.1 0.5 1", or "0.001*2^15": 15 bounds from 0.001, each twice the one before
  std::string_view deprecated{};  // the version that did it: "1.34.0"
  std::string_view path{};        // empty: /metrics
};

std::string_view StabilityName(Stability stability);  // INTERNAL, ALPHA, BETA, STABLE

enum class Component : uint8_t { kApiserver, kControllers, kScheduler, kKubelet, kProxy };

// Its own, and those that every component has. Lives as long as the process.
std::vector<const KubernetesMetric*> MetricsOf(Component component);
// Null: Kubernetes has none of that name.
const KubernetesMetric* FindKubernetesMetric(std::string_view name);
// Upper bounds without +Inf.
std::vector<double> BucketsOf(const KubernetesMetric& metric);
// "[STABLE] Help", "[ALPHA] (Deprecated since 1.27.0) Help"; the help alone for a metric of no stability.
std::string HelpWithStability(std::string_view name, std::string_view help);

// One table a file.
std::span<const KubernetesMetric> MetricsOfApiserver();
std::span<const KubernetesMetric> MetricsOfControllers();
std::span<const KubernetesMetric> MetricsOfScheduler();
std::span<const KubernetesMetric> MetricsOfKubelet();
std::span<const KubernetesMetric> MetricsOfProxy();
std::span<const KubernetesMetric> MetricsOfCommon();

}  // namespace keelson::metrics
