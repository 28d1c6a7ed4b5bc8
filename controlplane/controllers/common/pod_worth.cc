#include "controlplane/controllers/common/pod_worth.h"

#include <algorithm>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

int PhaseRank(const corev1::Pod& pod) {
  const std::string& phase = pod.status().phase();
  return phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0;
}

std::pair<int32_t, int32_t> MaxRestarts(const corev1::Pod& pod) {
  std::pair<int32_t, int32_t> restarts;
  for (const auto& status : pod.status().container_statuses())
    restarts.first = std::max(restarts.first, status.restart_count());
  for (const auto& status : pod.status().init_container_statuses()) {
    const auto& containers = pod.spec().init_containers();
    const bool sidecar = std::any_of(containers.begin(), containers.end(), [&](const auto& container) {
      return container.name() == status.name() && container.restart_policy() == "Always";
    });
    if (sidecar) restarts.second = std::max(restarts.second, status.restart_count());
  }
  return restarts;
}

int64_t ReadySince(const corev1::Pod& pod) {
  const corev1::PodCondition* ready = k8s::FindCondition(pod.status(), k8s::kPodReady);
  return ready && ready->status() == "True" ? ready->last_transition_time().seconds() : 0;
}

}  // namespace keelson::controllers
