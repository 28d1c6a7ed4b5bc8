#include "controlplane/scheduler/devices/taints.h"

#include <algorithm>

namespace keelson::scheduler {

bool Tolerates(const resourcev1::DeviceToleration& toleration, const resourcev1::DeviceTaint& taint) {
  if (!toleration.effect().empty() && toleration.effect() != taint.effect()) return false;
  if (!toleration.key().empty() && toleration.key() != taint.key()) return false;
  const std::string& op = toleration.operator_();
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") && toleration.value() == taint.value();
}

const resourcev1::DeviceTaint* FindUntolerated(const resourcev1::Device& device,
                                               const DeviceTolerations& tolerations) {
  for (const resourcev1::DeviceTaint& taint : device.taints()) {
    if (taint.effect() != "NoSchedule" && taint.effect() != "NoExecute") continue;
    const bool tolerated =
        std::any_of(tolerations.begin(), tolerations.end(),
                    [&](const resourcev1::DeviceToleration& one) { return Tolerates(one, taint); });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

}  // namespace keelson::scheduler
