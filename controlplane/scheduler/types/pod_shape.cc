#include "controlplane/scheduler/types/pod_shape.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace {

void CountDefaults(const corev1::Container& container, Resources& non_zero_requests, bool largest) {
  const auto of = [&](const char* name, int64_t otherwise) {
    const auto& requests = container.resources().requests();
    const auto it = requests.find(name);
    if (it == requests.end()) return otherwise;
    return k8s::ScaledValue(name, api::Amount::Of(it->second));
  };
  const int64_t milli_cpu = of("cpu", kDefaultMilliCpu), memory = of("memory", kDefaultMemory);
  non_zero_requests.milli_cpu =
      largest ? std::max(non_zero_requests.milli_cpu, milli_cpu) : non_zero_requests.milli_cpu + milli_cpu;
  non_zero_requests.memory =
      largest ? std::max(non_zero_requests.memory, memory) : non_zero_requests.memory + memory;
}

// "nginx" is "nginx:latest" where nodes report images.
std::string WithTag(const std::string& image) {
  const size_t colon = image.rfind(':'), slash = image.rfind('/');
  const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  return tagged ? image : image + ":latest";
}

// Features of nodes that a spec cannot do without, as nodes declare them.
std::vector<std::string> FeaturesOf(const corev1::PodSpec& spec) {
  bool restarts_all = false;
  k8s::ForEachContainer(spec, [&](const corev1::Container& container) {
    for (const auto& rule : container.restart_policy_rules()) {
      restarts_all = restarts_all || rule.action() == "RestartAllContainers";
    }
  });
  std::vector<std::string> out;
  if (restarts_all) out.push_back("RestartAllContainersOnContainerExits");
  return out;
}

// What is left of a container when only that counts which a shape is made from.
void CopyContainer(const corev1::Container& from, corev1::Container& to) {
  if (from.resources().requests_size() > 0) {
    *to.mutable_resources()->mutable_requests() = from.resources().requests();
  }
  to.set_image(from.image());
  if (from.has_restart_policy()) to.set_restart_policy(from.restart_policy());
  for (const corev1::ContainerPort& port : from.ports()) {
    if (port.host_port() != 0) *to.add_ports() = port;
  }
  for (const auto& rule : from.restart_policy_rules()) {
    if (rule.action() == "RestartAllContainers") *to.add_restart_policy_rules() = rule;
  }
}

corev1::PodSpec Alike(const corev1::PodSpec& spec) {
  corev1::PodSpec out;
  for (const corev1::Container& container : spec.containers()) {
    CopyContainer(container, *out.add_containers());
  }
  for (const corev1::Container& container : spec.init_containers()) {
    CopyContainer(container, *out.add_init_containers());
  }
  *out.mutable_node_selector() = spec.node_selector();
  *out.mutable_tolerations() = spec.tolerations();
  for (const corev1::Volume& volume : spec.volumes()) {
    if (volume.volume_source().has_image()) {
      out.add_volumes()->mutable_volume_source()->mutable_image()->set_reference(
          volume.volume_source().image().reference());
    }
  }
  if (spec.affinity().has_node_affinity()) {
    *out.mutable_affinity()->mutable_node_affinity() = spec.affinity().node_affinity();
  }
  if (spec.has_resources()) *out.mutable_resources()->mutable_requests() = spec.resources().requests();
  *out.mutable_overhead() = spec.overhead();
  out.set_priority(k8s::Priority(spec));
  out.set_preemption_policy(spec.preemption_policy());
  return out;
}

}  // namespace

Resources NonZeroRequests(const corev1::Pod& pod, const Resources& requests) {
  Resources non_zero_requests;
  for (const corev1::Container& container : pod.spec().containers()) {
    CountDefaults(container, non_zero_requests, false);
  }
  for (const corev1::Container& container : pod.spec().init_containers()) {
    CountDefaults(container, non_zero_requests, !k8s::IsSidecar(container));
  }
  non_zero_requests.milli_cpu = std::max(non_zero_requests.milli_cpu, requests.milli_cpu);
  non_zero_requests.memory = std::max(non_zero_requests.memory, requests.memory);
  return non_zero_requests;
}

PodShape::PodShape(uint64_t i, const corev1::Pod& pod, NameIds& resources)
    : id(i),
      priority(k8s::Priority(pod.spec())),
      never_preempts(pod.spec().preemption_policy() == "Never"),
      requests(Resources::From(k8s::PodRequests(pod), resources)),
      image_users(static_cast<size_t>(pod.spec().containers_size() + pod.spec().init_containers_size())),
      ports(k8s::HostPorts(pod.spec())),
      tolerations(pod.spec().tolerations()),
      affinity(pod.spec()),
      features(FeaturesOf(pod.spec())) {
  requests.pods = 1;
  best_effort = requests.milli_cpu == 0 && requests.memory == 0;
  non_zero_requests = NonZeroRequests(pod, requests);
  for (const corev1::PreferredSchedulingTerm& term :
       pod.spec().affinity().node_affinity().preferred_during_scheduling_ignored_during_execution()) {
    if (term.weight() != 0) preferred.push_back({term.weight(), k8s::NodeTerm(term.preference())});
  }
  k8s::ForEachContainer(pod.spec(), [&](const corev1::Container& container) {
    if (!container.image().empty()) images.push_back(WithTag(container.image()));
  });
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    if (!volume.volume_source().has_image()) continue;
    ++image_users;
    if (!volume.volume_source().image().reference().empty()) {
      images.push_back(WithTag(volume.volume_source().image().reference()));
    }
  }
}

std::shared_ptr<const PodShape> ShapeOf(const corev1::Pod& pod, Vocabulary& words) {
  return words.shapes.Get(api::EncodeRaw(Alike(pod.spec())), pod, words.resources);
}

}  // namespace keelson::scheduler
