// How many pods and containers the workers have, by state: kubelet_running_pods, kubelet_working_pods and others.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "lib/api/types.h"

namespace keelson::kubelet {

struct PodCounts {
  // lifecycle (sync, terminating, terminated), config (desired, orphan, runtime_only), static ("true", "",
  // "unknown")
  using Work = std::tuple<std::string, std::string, std::string>;
  std::map<std::string, int> desired, active;  // static: "true" or ""
  int mirrors = 0;
  std::map<Work, int> working;
  int running_pods = 0, ephemeral_containers = 0;
  std::map<std::string, int> containers;  // state: created, exited, running, unknown
};

// Sets the gauges. Any thread.
void SetPodMetrics(const PodCounts& counts);

// A pod came again with a UID that its source had removed: kubelet_restarted_pods_total.
void CountRestartedPod(const corev1::Pod& pod);
// The time from a pod's first update to the first step of its worker: kubelet_pod_worker_start_duration_seconds.
void ObserveWorkerStart(double seconds);

}  // namespace keelson::kubelet
