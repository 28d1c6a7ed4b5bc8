#include "kubelet/resize/resize_metrics.h"

#include <algorithm>

#include "lib/k8s/pods/pod_resources.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

// Empty: the amount stays as it is.
std::string Operation(const k8s::QuantityMap& from, const k8s::QuantityMap& to, const std::string& resource) {
  const auto old = from.find(resource), now = to.find(resource);
  if (old == from.end()) return now == to.end() ? "" : "add";
  if (now == to.end()) return "remove";
  const api::Amount before = api::Amount::Of(old->second), after = api::Amount::Of(now->second);
  return before == after ? "" : before < after ? "increase" : "decrease";
}

void CountContainer(const corev1::ResourceRequirements& from, const corev1::ResourceRequirements& to) {
  static metrics::Family& requested = metrics::Counter(
      "kubelet_container_requested_resizes_total",
      "Number of requested resizes, counted at the container level. Different resources on the same "
      "container are counted separately.",
      {"resource", "requirement", "operation"});
  for (const char* resource : {"cpu", "memory"}) {
    if (std::string what = Operation(from.requests(), to.requests(), resource); !what.empty()) {
      requested.With({resource, "requests", what}).Increment();
    }
    if (std::string what = Operation(from.limits(), to.limits(), resource); !what.empty()) {
      requested.With({resource, "limits", what}).Increment();
    }
  }
}

}  // namespace

void CountRequestedResize(const corev1::Pod& wish, const corev1::Pod& granted) {
  auto all = [](const auto& from, const auto& to) {
    for (int i = 0; i < std::min(from.size(), to.size()); ++i) {
      CountContainer(from[i].resources(), to[i].resources());
    }
  };
  all(granted.spec().init_containers(), wish.spec().init_containers());
  all(granted.spec().containers(), wish.spec().containers());
}

void CountInfeasibleResize(const std::string& reason_detail) {
  static metrics::Family& infeasible = metrics::Counter(
      "kubelet_pod_infeasible_resizes_total", "Number of infeasible resizes for pods.", {"reason_detail"});
  infeasible.With({reason_detail}).Increment();
}

void CountDeferredResizeAccepted(const std::string& trigger) {
  static metrics::Family& accepted = metrics::Counter(
      "kubelet_pod_deferred_accepted_resizes_total",
      "Cumulative number of resizes that were accepted after being deferred.", {"retry_trigger"});
  accepted.With({trigger}).Increment();
}

void CountResizeDuration(bool success, double seconds) {
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_pod_resize_duration_milliseconds", "Duration in milliseconds to actuate a pod resize",
      {10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000}, {"success"});
  duration.HistogramWith({success ? "true" : "false"}).Observe(seconds * 1000);
}

void CountResizeState(const ResizeState& state, int by) {
  static metrics::Family& pending =
      metrics::Gauge("kubelet_pod_pending_resizes", "Number of pending resizes for pods.", {"reason"});
  static metrics::Value& in_progress =
      metrics::Gauge("kubelet_pod_in_progress_resizes", "Number of in-progress resizes for pods.").With();
  if (!state.pending.empty()) pending.With({state.pending == "Deferred" ? "deferred" : "infeasible"}).Add(by);
  if (state.in_progress) in_progress.Add(by);
}

}  // namespace keelson::kubelet
