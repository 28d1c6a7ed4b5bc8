#include "kubelet/podresources/source.h"

#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet::podresources {

std::vector<PodResources> SourceLister::List() {
  std::vector<PodResources> out;
  for (const Source::PodPtr& pod : source_.ActivePods()) out.push_back(Of(*pod));
  return out;
}

std::optional<PodResources> SourceLister::Get(const std::string& ns, const std::string& name) {
  Source::PodPtr pod = source_.FindPod(ns, name);
  if (!pod) return std::nullopt;
  return Of(*pod);
}

PodResources SourceLister::Of(const corev1::Pod& pod) {
  PodResources out{pod.metadata().name(), pod.metadata().namespace_(), {}};
  auto add = [&](const corev1::Container& container, bool sidecar) {
    out.containers.push_back(source_.ResourcesOf(pod, container));
    out.containers.back().name = container.name();
    out.containers.back().sidecar = sidecar;
  };
  for (const auto& init : pod.spec().init_containers()) {
    if (k8s::IsSidecar(init)) add(init, true);
  }
  for (const auto& container : pod.spec().containers()) add(container, false);
  return out;
}

}  // namespace keelson::kubelet::podresources
