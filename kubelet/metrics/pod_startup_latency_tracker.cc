#include "kubelet/metrics/pod_startup_latency_tracker.h"

#include <algorithm>

#include "kubelet/metrics/buckets.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

using std::chrono::nanoseconds;

double Seconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

metrics::Histogram& StartDuration() {
  return metrics::Histograms(
             "kubelet_pod_start_duration_seconds",
             "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run",
             PodStartBuckets())
      .HistogramWith();
}
metrics::Histogram& SliDuration() {
  return metrics::Histograms("kubelet_pod_start_sli_duration_seconds",
                             "Duration in seconds to start a pod, excluding time to pull images and run init "
                             "containers, measured from pod creation timestamp to when all its containers "
                             "are reported as started and observed via watch",
                             PodStartBuckets())
      .HistogramWith();
}
metrics::Histogram& TotalDuration() {
  return metrics::Histograms("kubelet_pod_start_total_duration_seconds",
                             "Duration in seconds to start a pod since creation, including time to pull "
                             "images and run init containers, measured from pod creation timestamp to when "
                             "all its containers are reported as started and observed via watch",
                             PodStartBuckets())
      .HistogramWith();
}

bool AllStarted(const corev1::Pod& pod) {
  const auto& statuses = pod.status().container_statuses();
  return statuses.size() == pod.spec().containers_size() &&
         std::all_of(statuses.begin(), statuses.end(),
                     [](const auto& status) { return status.state().running().has_started_at(); });
}

// The time that init containers took, which run one after another.
nanoseconds InitTime(const corev1::Pod& pod) {
  nanoseconds time{0};
  for (const auto& status : pod.status().init_container_statuses()) {
    const auto& end = status.state().terminated();
    if (end.has_started_at() && end.has_finished_at()) {
      time += api::FromTime(end.finished_at()) - api::FromTime(end.started_at());
    }
  }
  return time;
}

// The SLI leaves out pods with volumes that may have to be attached first.
bool IsStateful(const corev1::Pod& pod) {
  const auto& volumes = pod.spec().volumes();
  return std::any_of(volumes.begin(), volumes.end(), [](const auto& volume) {
    return volume.volume_source().has_persistent_volume_claim() || volume.volume_source().has_ephemeral();
  });
}

}  // namespace

PodStartupLatencyTracker::PodStartupLatencyTracker(Clock& clock) : clock_(clock) {
  StartDuration();  // exported from the first scrape on
  SliDuration();
  TotalDuration();
}

void PodStartupLatencyTracker::ObservePodOnWatch(const corev1::Pod& pod) {
  MutexLock lock(mutex_);
  const std::string& uid = pod.metadata().uid();
  if (k8s::IsTerminal(pod)) {
    starts_.erase(uid);
    return;
  }
  auto it = starts_.find(uid);
  if (it == starts_.end()) {
    if (!pod.status().has_start_time()) starts_[uid].seen = clock_.SteadyNow();
    return;
  }
  Start& start = it->second;
  if (!start.runs && pod.status().phase() == "Running") {
    start.runs = true;
    StartDuration().Observe(Seconds(clock_.SteadyNow() - start.seen));
  }
  if (start.observed || !AllStarted(pod)) return;
  start.observed = true;
  const nanoseconds total = std::max<nanoseconds>(
      clock_.Now() - api::FromTime(pod.metadata().creation_timestamp()), nanoseconds(0));
  TotalDuration().Observe(Seconds(total));
  if (!IsStateful(pod)) {
    SliDuration().Observe(Seconds(std::max(total - start.pulling - InitTime(pod), nanoseconds(0))));
  }
}

void PodStartupLatencyTracker::RecordImagePull(const std::string& uid, nanoseconds took) {
  MutexLock lock(mutex_);
  if (auto it = starts_.find(uid); it != starts_.end()) it->second.pulling += took;
}

void PodStartupLatencyTracker::DeletePod(const std::string& uid) {
  MutexLock lock(mutex_);
  starts_.erase(uid);
}

}  // namespace keelson::kubelet
