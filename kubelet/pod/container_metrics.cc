#include "kubelet/pod/container_metrics.h"

#include <algorithm>

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

const char* TypeOf(const corev1::PodSpec& spec, const std::string& container) {
  const auto named = [&](const auto& item) { return item.name() == container; };
  const auto& init = spec.init_containers();
  if (std::any_of(init.begin(), init.end(), named)) return "init_container";
  const auto& apps = spec.containers();
  return std::any_of(apps.begin(), apps.end(), named) ? "container" : "ephemeral_container";
}

// Made at start: what counts no labels says 0 before it counts.
metrics::Family& rejected =
    metrics::Counter("kubelet_admission_rejections_total",
                     "Cumulative number pod admission rejections by the Kubelet.", {"reason"});
metrics::Histogram& containers =
    metrics::Histograms("kubelet_containers_per_pod_count", "The number of containers per pod.",
                        metrics::ExponentialBuckets(1, 2, 5))
        .HistogramWith();
metrics::Family& started = metrics::Counter("kubelet_started_containers_total",
                                            "Cumulative number of containers started", {"container_type"});
metrics::Family& failed =
    metrics::Counter("kubelet_started_containers_errors_total",
                     "Cumulative number of errors when starting containers", {"container_type", "code"});
metrics::Family& ended =
    metrics::Counter("kubelet_terminated_containers_total", "Cumulative number of containers terminated",
                     {"container_type", "exit_code", "reason"});
auto& namespaced = metrics::Counter("kubelet_started_user_namespaced_pods_total",
                                    "Cumulative number of pods with user namespaces started.")
                       .With();
auto& namespaced_errors =
    metrics::Counter("kubelet_started_user_namespaced_pods_errors_total",
                     "Cumulative number of errors when starting pods with user namespaces.")
        .With();
auto& image_volumes =
    metrics::Counter("kubelet_image_volume_requested_total", "Number of requested image volumes.").With();
auto& image_volumes_mounted = metrics::Counter("kubelet_image_volume_mounted_succeed_total",
                                               "Number of successful image volume mounts.")
                                  .With();
auto& image_volume_errors =
    metrics::Counter("kubelet_image_volume_mounted_errors_total", "Number of failed image volume mounts.")
        .With();

}  // namespace

void CountRejectedPod(const std::string& reason) { rejected.With({reason}).Increment(); }

void CountAdmittedPod(const corev1::PodSpec& spec) { containers.Observe(spec.containers_size()); }

void CountContainerStart(const corev1::PodSpec& spec, const std::string& container) {
  started.With({TypeOf(spec, container)}).Increment();
}

void CountContainerFailure(const corev1::PodSpec& spec, const std::string& container,
                           const std::string& code) {
  failed.With({TypeOf(spec, container), code}).Increment();
}

void CountContainerEnds(const corev1::PodSpec& spec, const PodRuntimeStatus& before,
                        const PodRuntimeStatus& now) {
  for (const ContainerRecord& record : now.containers) {
    if (record.state != cri::ContainerState::kExited) continue;
    const ContainerRecord* known = before.ById(record.id);
    if (known && known->state == cri::ContainerState::kExited) continue;
    ended.With({TypeOf(spec, record.name), std::to_string(record.exit_code), EndReason(record)}).Increment();
  }
}

void CountUserNamespaces(bool good) { (good ? namespaced : namespaced_errors).Increment(); }

void CountImageVolume() { image_volumes.Increment(); }

void CountImageVolumesMounted(int volumes, bool mounted) {
  (mounted ? image_volumes_mounted : image_volume_errors).Add(volumes);
}

}  // namespace keelson::kubelet
