#include "kubelet/status/readiness.h"

namespace keelson::kubelet {

bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes) {
  return !container.has_startup_probe() || probes.Get(ProbeKind::kStartup, id).value_or(false);
}

bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes) {
  if (!ContainerStarted(container, id, probes)) return false;
  return !container.has_readiness_probe() || probes.Get(ProbeKind::kReadiness, id).value_or(false);
}

}  // namespace keelson::kubelet
