#include "kubelet/pod/pod_worker_metrics.h"

#include "kubelet/metrics/buckets.h"
#include "kubelet/pod/pod_workers.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

const char* NameOf(cri::ContainerState state) {
  switch (state) {
    case cri::ContainerState::kCreated:
      return "created";
    case cri::ContainerState::kRunning:
      return "running";
    case cri::ContainerState::kExited:
      return "exited";
    default:
      return "unknown";
  }
}

const char* StaticLabel(const corev1::Pod& pod) { return k8s::IsStatic(pod) ? "true" : ""; }

void SetAll(metrics::Family& family, const std::map<std::string, int>& counts,
            std::initializer_list<const char*> always) {
  family.Clear();
  for (const char* label : always) family.With({label});
  for (const auto& [label, count] : counts) family.With({label}).Set(count);
}

metrics::Family& Restarts() {
  static metrics::Family& family = metrics::Counter(
      "kubelet_restarted_pods_total",
      "Number of pods that have been restarted because they were deleted and recreated with the same UID "
      "while the kubelet was watching them (common for static pods, extremely uncommon for API pods)",
      {"static"});
  return family;
}

void CountRuntime(const PodRuntimeStatus& runtime, PodCounts& counts) {
  if (runtime.ReadySandbox()) ++counts.running_pods;
  for (const ContainerRecord& record : runtime.containers) ++counts.containers[NameOf(record.state)];
}

}  // namespace

PodCounts PodWorkers::CountPods() const {
  PodCounts counts;
  MutexLock lock(mutex_);
  for (const auto& [uid, entry] : pod_sync_statuses_) {
    const corev1::Pod& pod = *entry->pod;
    if (entry->runtime_status) CountRuntime(*entry->runtime_status, counts);
    const char* lifecycle = entry->state == PodWorkerState::kSyncPod          ? "sync"
                            : entry->state == PodWorkerState::kTerminatingPod ? "terminating"
                                                                              : "terminated";
    if (entry->runtime_only) {
      ++counts.working[{lifecycle, "runtime_only", "unknown"}];
      continue;
    }
    const char* is_static = StaticLabel(pod);
    ++counts.working[{lifecycle, entry->removed ? "orphan" : "desired", is_static}];
    counts.ephemeral_containers += pod.spec().ephemeral_containers_size();
    if (!entry->removed) ++counts.desired[is_static];
    if (entry->sync_state.admitted && !entry->terminal) {
      ++counts.active[is_static];
      counts.mirrors += k8s::IsStatic(pod);
    }
  }
  return counts;
}

void SetPodMetrics(const PodCounts& counts) {
  SetAll(metrics::Gauge(
             "kubelet_desired_pods",
             "The number of pods the kubelet is being instructed to run. static is true if the pod is "
             "not from the apiserver.",
             {"static"}),
         counts.desired, {"", "true"});
  SetAll(metrics::Gauge("kubelet_active_pods",
                        "The number of pods the kubelet considers active and which are being considered when "
                        "admitting new pods. static is true if the pod is not from the apiserver.",
                        {"static"}),
         counts.active, {"", "true"});
  SetAll(metrics::Gauge("kubelet_running_containers", "Number of containers currently running",
                        {"container_state"}),
         counts.containers, {"running"});
  metrics::Gauge("kubelet_mirror_pods",
                 "The number of mirror pods the kubelet will try to create (one per admitted static pod)")
      .With()
      .Set(counts.mirrors);
  metrics::Gauge("kubelet_running_pods", "Number of pods that have a running pod sandbox")
      .With()
      .Set(counts.running_pods);
  metrics::Gauge("kubelet_managed_ephemeral_containers",
                 "Current number of ephemeral containers in pods managed by this kubelet.")
      .With()
      .Set(counts.ephemeral_containers);
  metrics::Family& working = metrics::Gauge(
      "kubelet_working_pods",
      "Number of pods the kubelet is actually running, broken down by lifecycle phase, whether "
      "the pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is "
      "static. An orphaned pod has been removed from local configuration or force deleted in "
      "the API and consumes resources that are not otherwise visible.",
      {"lifecycle", "config", "static"});
  working.Clear();
  working.With({"sync", "desired", ""});
  for (const auto& [work, count] : counts.working) {
    working.With({std::get<0>(work), std::get<1>(work), std::get<2>(work)}).Set(count);
  }
  for (const char* is_static : {"", "true"}) Restarts().With({is_static});
}

void CountRestartedPod(const corev1::Pod& pod) { Restarts().With({StaticLabel(pod)}).Increment(); }

void ObserveWorkerStart(double seconds) {
  static metrics::Histogram& start =
      metrics::Histograms("kubelet_pod_worker_start_duration_seconds",
                          "Duration in seconds from kubelet seeing a pod to starting a worker.",
                          DefaultBuckets())
          .HistogramWith();
  start.Observe(seconds);
}

}  // namespace keelson::kubelet
