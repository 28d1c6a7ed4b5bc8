// The metrics of Kubernetes 1.36: name, type, stability, labels and buckets of everything that each
// component serves (Kubernetes documentation, "Kubernetes Metrics Reference"). /metrics prints the
// stability from it, and tests compare each component with it (lib/metrics/conformance.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::metrics {

enum class Stability : uint8_t { kInternal, kAlpha, kBeta, kStable };
// kAny: made by a custom collector; upstream's list does not give the type.
enum class Kind : uint8_t { kCounter, kGauge, kHistogram, kSummary, kAny };

struct KubernetesMetric {
  std::string_view name;
  Kind kind;
  Stability stability;
  std::string_view labels;  // sorted, comma separated, constant ones too
  // "0.1 0.5 1", or "0.001*2^15": 15 bounds from 0.001, each twice the one before.
  std::string_view buckets{};
  std::string_view deprecated{};  // the version that deprecated it: "1.34.0"
  std::string_view path{};        // empty: /metrics
};

std::string_view StabilityName(Stability stability);  // INTERNAL, ALPHA, BETA, STABLE

enum class Component : uint8_t { kApiserver, kControllers, kScheduler, kKubelet, kProxy };

// The component's own metrics and those of every component. The pointers stay valid for the process's life.
std::vector<const KubernetesMetric*> MetricsOf(Component component);
// Null: Kubernetes has no metric of that name.
const KubernetesMetric* FindKubernetesMetric(std::string_view name);
// Upper bounds of the buckets, without +Inf.
std::vector<double> BucketsOf(const KubernetesMetric& metric);
// "[STABLE] Help", "[ALPHA] (Deprecated since 1.27.0) Help"; only the help for a metric without a
// stability.
std::string HelpWithStability(std::string_view name, std::string_view help);

// The tables, one per file.
std::span<const KubernetesMetric> MetricsOfApiserver();
std::span<const KubernetesMetric> MetricsOfControllers();
std::span<const KubernetesMetric> MetricsOfScheduler();
std::span<const KubernetesMetric> MetricsOfKubelet();
std::span<const KubernetesMetric> MetricsOfProxy();
std::span<const KubernetesMetric> MetricsOfCommon();

}  // namespace keelson::metrics
