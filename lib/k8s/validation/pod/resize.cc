// What pods/resize may change: cpu and memory of containers and of the pod.
#include <algorithm>

#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kOnlyCpuAndMemory = "only cpu and memory resources are mutable";

bool AnyRemoved(const QuantityMap& now, const QuantityMap& old) {
  return std::any_of(old.begin(), old.end(), [&](const auto& item) { return !now.contains(item.first); });
}

void CheckNoneRemoved(const corev1::ResourceRequirements& now, const corev1::ResourceRequirements& old,
                      std::string_view what, const Path& path, FieldErrors& errors) {
  const std::string prefix(what);
  if (AnyRemoved(now.requests(), old.requests())) {
    errors.push_back(Forbidden(path.Child("requests"), prefix + " requests cannot be removed"));
  }
  if (AnyRemoved(now.limits(), old.limits())) {
    errors.push_back(Forbidden(path.Child("limits"), prefix + " limits cannot be removed"));
  }
}

void RestoreQuantities(QuantityMap& now, const QuantityMap& old) {
  for (const char* name : {"cpu", "memory"}) {
    now.erase(name);
    const auto found = old.find(name);
    if (found != old.end()) now[name] = found->second;
  }
}

void RestoreCpuAndMemory(corev1::ResourceRequirements& now, const corev1::ResourceRequirements& old) {
  RestoreQuantities(*now.mutable_limits(), old.limits());
  RestoreQuantities(*now.mutable_requests(), old.requests());
}

void RestoreContainer(corev1::Container& now, const corev1::Container& old) {
  if (!now.has_resources() && !old.has_resources()) return;
  RestoreCpuAndMemory(*now.mutable_resources(), old.resources());
  if (!old.has_resources() && now.resources().ByteSizeLong() == 0) now.clear_resources();
}

// Containers must keep their places and names. False: the lists cannot be compared further.
bool CheckOrder(const Containers& now, const Containers& old, const std::string& list, const Path& path,
                FieldErrors& errors) {
  if (now.size() != old.size()) {
    errors.push_back(Forbidden(path, list + " may not be added or removed on resize"));
    return false;
  }
  bool same = true;
  for (int i = 0; i < now.size(); ++i) {
    if (now[i].name() == old[i].name()) continue;
    errors.push_back(
        Forbidden(path.Index(i).Child("name"), list + " may not be renamed or reordered on resize"));
    same = false;
  }
  return same;
}

// A node that does not report the resources of running containers cannot resize them.
bool NodeResizes(const corev1::Pod& pod) {
  for (const corev1::ContainerStatus& status : pod.status().container_statuses()) {
    if (status.state().has_running()) return status.has_resources();
  }
  return true;
}

bool HasPodLevel(const corev1::PodSpec& spec) {
  return !spec.resources().requests().empty() || !spec.resources().limits().empty();
}

void CheckPodLevel(corev1::PodSpec& rest, const corev1::PodSpec& old, const Path& path, FieldErrors& errors) {
  if (old.has_resources() && !rest.has_resources()) {
    errors.push_back(Forbidden(path.Child("resources"), "pod-level resources cannot be removed"));
    return;
  }
  CheckNoneRemoved(rest.resources(), old.resources(), "pod-level resource", path.Child("resources"), errors);
  RestoreCpuAndMemory(*rest.mutable_resources(), old.resources());
  if (!old.has_resources() && rest.resources().ByteSizeLong() == 0) rest.clear_resources();
  if (rest.has_resources() != old.has_resources() || !SameMessage(rest.resources(), old.resources())) {
    errors.push_back(Forbidden(path, "only cpu and memory resources are mutable at pod-level"));
  }
}

void CheckInitContainers(corev1::PodSpec& rest, const corev1::PodSpec& old, const Path& path,
                         FieldErrors& errors) {
  for (int i = 0; i < rest.init_containers_size(); ++i) {
    corev1::Container& now = *rest.mutable_init_containers(i);
    const corev1::Container& before = old.init_containers(i);
    const bool changed = !SameMessage(now, before);
    RestoreContainer(now, before);
    if (!SameMessage(now, before)) {
      errors.push_back(Forbidden(path.Index(i),
                                 "only cpu and memory resources for init or sidecar containers are mutable"));
    }
    if (!changed || IsSidecar(now)) continue;
    // New pods cannot have such policies, but older pods do.
    for (const corev1::ContainerResizePolicy& policy : now.resize_policy()) {
      if (policy.restart_policy() != "RestartContainer") continue;
      errors.push_back(Forbidden(path.Index(i),
                                 "non-sidecar init containers with a resize policy of RestartContainer "
                                 "cannot be resized"));
    }
  }
}

}  // namespace

void CheckPodResize(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors) {
  const Path path("spec");
  CheckPodMetadataAndSpec(pod, &old, errors);
  if (old.metadata().annotations().contains(std::string(kMirrorAnnotation))) {
    errors = {Forbidden(Path(""), "static pods cannot be resized")};
    return;
  }
  if (old.spec().os().name() == "windows") {
    errors = {Forbidden(Path(""), "windows pods cannot be resized")};
    return;
  }
  if (QosClass(old) != ComputeQosClass(pod)) {
    errors.push_back(
        Invalid(path, pod.status().qos_class(), "Pod QOS Class may not change as a result of resizing"));
  }
  if (!NodeResizes(old)) errors.push_back(Forbidden(path, "Pod running on node without support for resize"));
  corev1::PodSpec rest = pod.spec();
  const corev1::PodSpec& before = old.spec();
  if (HasPodLevel(before) || HasPodLevel(rest)) CheckPodLevel(rest, before, path, errors);
  const Path containers = path.Child("containers"), init = path.Child("initContainers");
  const bool regular = CheckOrder(rest.containers(), before.containers(), "containers", containers, errors);
  const bool inits =
      CheckOrder(rest.init_containers(), before.init_containers(), "initContainers", init, errors);
  if (!regular || !inits) return;
  for (int i = 0; i < rest.init_containers_size(); ++i) {
    CheckNoneRemoved(rest.init_containers(i).resources(), before.init_containers(i).resources(), "resource",
                     init.Index(i).Child("resources"), errors);
  }
  for (int i = 0; i < rest.containers_size(); ++i) {
    CheckNoneRemoved(rest.containers(i).resources(), before.containers(i).resources(), "resource",
                     containers.Index(i).Child("resources"), errors);
  }
  for (int i = 0; i < rest.containers_size(); ++i) {
    RestoreContainer(*rest.mutable_containers(i), before.containers(i));
    if (!SameMessage(rest.containers(i), before.containers(i))) {
      errors.push_back(Forbidden(path, kOnlyCpuAndMemory));
    }
  }
  CheckInitContainers(rest, before, init, errors);
  if (errors.empty() && !SameMessage(rest, before)) errors.push_back(Forbidden(path, kOnlyCpuAndMemory));
}

}  // namespace keelson::k8s
