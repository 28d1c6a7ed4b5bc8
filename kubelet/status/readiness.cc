#include "kubelet/status/readiness.h"

#include "kubelet/status/conditions.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

// "containerd://4f1c" -> "4f1c"
std::string IdInRuntime(const corev1::ContainerStatus& container) {
  const std::string& id = container.container_id();
  const size_t scheme = id.find("://");
  return scheme == std::string::npos ? id : id.substr(scheme + 3);
}

bool Update(const corev1::Container& container, const ProbeResults& probes, corev1::ContainerStatus& told) {
  const std::string id = IdInRuntime(told);
  const bool started = ContainerStarted(container, id, probes);
  const bool ready = ContainerReady(container, id, probes);
  if (told.started() == started && told.ready() == ready) return false;
  told.set_started(started);
  if (ready) {
    told.set_ready(true);
  } else {
    told.clear_ready();
  }
  return true;
}

}  // namespace

bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes) {
  return !container.has_startup_probe() || probes.Get(ProbeKind::kStartup, id).value_or(false);
}

bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes) {
  if (!ContainerStarted(container, id, probes)) return false;
  return !container.has_readiness_probe() || probes.Get(ProbeKind::kReadiness, id).value_or(false);
}

bool UpdateReadiness(const corev1::PodSpec& spec, const ProbeResults& probes, WallTime now,
                     corev1::PodStatus& status) {
  if (status.phase() == "Succeeded" || status.phase() == "Failed") return false;
  if (status.init_container_statuses_size() != spec.init_containers_size()) return false;  // of no sync
  bool changed = false;
  const auto update = [&](const corev1::Container& container, corev1::ContainerStatus& told) {
    if (told.name() == container.name() && told.state().has_running()) {
      changed = Update(container, probes, told) || changed;
    }
  };
  // In the spec's order, as they were told.
  for (int i = 0; i < spec.init_containers_size(); ++i) {
    if (k8s::IsSidecar(spec.init_containers(i))) {
      update(spec.init_containers(i), *status.mutable_init_container_statuses(i));
    }
  }
  for (int i = 0; i < spec.containers_size() && i < status.container_statuses_size(); ++i) {
    update(spec.containers(i), *status.mutable_container_statuses(i));
  }
  if (changed) FillReadyConditions(spec, now, status);
  return changed;
}

}  // namespace keelson::kubelet
