#include "kubelet/container/restart.h"

#include <algorithm>

namespace keelson::kubelet {

const std::string& RestartPolicy(const corev1::PodSpec& spec, const corev1::Container& container) {
  return container.has_restart_policy() ? container.restart_policy() : spec.restart_policy();
}

const corev1::ContainerRestartRule* RestartRule(const corev1::Container& container, int32_t exit_code) {
  for (const auto& rule : container.restart_policy_rules()) {
    if (!rule.has_exit_codes()) continue;
    const auto& codes = rule.exit_codes().values();
    bool listed = std::find(codes.begin(), codes.end(), exit_code) != codes.end();
    if (listed == (rule.exit_codes().operator_() == "In")) return &rule;
  }
  return nullptr;
}

bool MayRestart(const corev1::PodSpec& spec, const corev1::Container& container, int32_t exit_code) {
  if (RestartRule(container, exit_code)) return true;  // whatever its action: both start it again
  const std::string& policy = RestartPolicy(spec, container);
  if (policy == "Never") return false;
  return policy != "OnFailure" || exit_code != 0;
}

}  // namespace keelson::kubelet
