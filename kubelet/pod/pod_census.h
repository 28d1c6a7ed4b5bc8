// How many pods and containers there are, by what they are at: kubelet_running_pods and its like.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "lib/api/types.h"

namespace keelson::kubelet {

struct PodCensus {
  // lifecycle (sync, terminating, terminated), config (desired, orphan, runtime_only), static ("true", "",
  // "unknown")
  using Work = std::tuple<std::string, std::string, std::string>;
  std::map<std::string, int> desired, active;  // static: "true" or ""
  int mirrors = 0;
  std::map<Work, int> working;
  int running_pods = 0, ephemeral_containers = 0;
  std::map<std::string, int> containers;  // state: created, exited, running, unknown
};

// Onto /metrics.
void Tell(const PodCensus& census);

// A pod of the same UID has come again.
void CountRestart(const corev1::Pod& pod);
// From a pod's first sight to the first step of its worker.
void CountWorkerStart(double seconds);

}  // namespace keelson::kubelet
