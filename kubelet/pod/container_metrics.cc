#include "kubelet/pod/container_metrics.h"

#include <algorithm>

#include "lib/base/metrics.h"

namespace keelson::kubelet {

namespace {

const char* TypeOf(const corev1::PodSpec& spec, const std::string& container) {
  const auto named = [&](const auto& item) { return item.name() == container; };
  const auto& init = spec.init_containers();
  if (std::any_of(init.begin(), init.end(), named)) return "init_container";
  const auto& apps = spec.containers();
  return std::any_of(apps.begin(), apps.end(), named) ? "container" : "ephemeral_container";
}

}  // namespace

void CountRejectedPod(const std::string& reason) {
  static metrics::Family& rejected =
      metrics::Counter("kubelet_admission_rejections_total",
                       "Cumulative number pod admission rejections by the Kubelet.", {"reason"});
  rejected.With({reason}).Increment();
}

void CountAdmittedPod(const corev1::PodSpec& spec) {
  static metrics::Histogram& containers =
      metrics::Histograms("kubelet_containers_per_pod_count", "The number of containers per pod.",
                          metrics::ExponentialBuckets(1, 2, 5))
          .HistogramWith();
  containers.Observe(spec.containers_size());
}

void CountContainerStart(const corev1::PodSpec& spec, const std::string& container) {
  static metrics::Family& started = metrics::Counter(
      "kubelet_started_containers_total", "Cumulative number of containers started", {"container_type"});
  started.With({TypeOf(spec, container)}).Increment();
}

void CountContainerFailure(const corev1::PodSpec& spec, const std::string& container,
                           const std::string& code) {
  static metrics::Family& failed =
      metrics::Counter("kubelet_started_containers_errors_total",
                       "Cumulative number of errors when starting containers", {"container_type", "code"});
  failed.With({TypeOf(spec, container), code}).Increment();
}

void CountUserNamespaces(bool started) {
  if (started)
    metrics::Counter("kubelet_started_user_namespaced_pods_total",
                     "Cumulative number of pods with user namespaces started.")
        .With()
        .Increment();
  else
    metrics::Counter("kubelet_started_user_namespaced_pods_errors_total",
                     "Cumulative number of errors when starting pods with user namespaces.")
        .With()
        .Increment();
}

void CountImageVolume() {
  metrics::Counter("kubelet_image_volume_requested_total", "Number of requested image volumes.")
      .With()
      .Increment();
}

void CountImageVolumesMounted(int volumes, bool mounted) {
  if (volumes == 0) return;
  if (mounted)
    metrics::Counter("kubelet_image_volume_mounted_succeed_total",
                     "Number of successful image volume mounts.")
        .With()
        .Add(volumes);
  else
    metrics::Counter("kubelet_image_volume_mounted_errors_total", "Number of failed image volume mounts.")
        .With()
        .Add(volumes);
}

}  // namespace keelson::kubelet
