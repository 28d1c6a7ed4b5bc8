#include "controlplane/controllers/common/availability.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

std::optional<std::chrono::nanoseconds> UntilAvailable(const corev1::Pod& pod, int32_t min_ready_seconds,
                                                       WallTime now) {
  if (!k8s::IsReady(pod) || k8s::IsAvailable(pod, min_ready_seconds, now)) return std::nullopt;
  const corev1::PodCondition* ready = k8s::FindCondition(pod.status(), k8s::kPodReady);
  if (!ready->has_last_transition_time()) return std::nullopt;
  const WallTime at = api::FromTime(ready->last_transition_time()) + std::chrono::seconds(min_ready_seconds);
  return std::max<std::chrono::nanoseconds>(at - now, std::chrono::milliseconds(1));
}

}  // namespace keelson::controllers
