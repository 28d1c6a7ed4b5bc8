#include "controlplane/scheduler/pod_info.h"

#include <fmt/format.h>

#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/pod_util.h"

namespace keelson::scheduler {

namespace {

void CountDefaults(const corev1::Container& container, Resources& scoring, bool largest) {
  const auto of = [&](const char* name, int64_t otherwise) {
    const auto& requests = container.resources().requests();
    const auto it = requests.find(name);
    if (it == requests.end()) return otherwise;
    return k8s::ScaledValue(name, api::Amount::Of(it->second));
  };
  const int64_t milli_cpu = of("cpu", kDefaultMilliCpu), memory = of("memory", kDefaultMemory);
  scoring.milli_cpu = largest ? std::max(scoring.milli_cpu, milli_cpu) : scoring.milli_cpu + milli_cpu;
  scoring.memory = largest ? std::max(scoring.memory, memory) : scoring.memory + memory;
}

Resources ScoringOf(const corev1::Pod& pod, const Resources& requests) {
  Resources scoring;
  for (const corev1::Container& container : pod.spec().containers()) CountDefaults(container, scoring, false);
  for (const corev1::Container& container : pod.spec().init_containers()) {
    CountDefaults(container, scoring, !k8s::IsSidecar(container));
  }
  scoring.milli_cpu = std::max(scoring.milli_cpu, requests.milli_cpu);
  scoring.memory = std::max(scoring.memory, requests.memory);
  return scoring;
}

// Every input of node-local filters and scores.
std::string SignatureOf(const corev1::Pod& pod, const PodInfo& info) {
  std::string out = fmt::format("{} {} {} {} {} {}", info.requests.milli_cpu, info.requests.memory,
                                info.requests.ephemeral_storage, info.scoring.milli_cpu, info.scoring.memory,
                                info.node_name);
  for (const auto& [id, value] : info.requests.others) out += fmt::format(" {}={}", id, value);
  for (const k8s::HostPort& port : info.ports)
    out += fmt::format(" {}:{}/{}", port.ip, port.port, port.protocol);
  corev1::PodSpec placement;
  *placement.mutable_tolerations() = info.tolerations;
  *placement.mutable_node_selector() = pod.spec().node_selector();
  if (pod.spec().affinity().has_node_affinity()) {
    *placement.mutable_affinity()->mutable_node_affinity() = pod.spec().affinity().node_affinity();
  }
  return out + '\n' + api::EncodeRaw(placement);
}

}  // namespace

PodInfo::PodInfo(const corev1::Pod& pod, ResourceNames& names)
    : ns(pod.metadata().namespace_()),
      name(pod.metadata().name()),
      uid(pod.metadata().uid()),
      key(api::KeyOf(pod)),
      node_name(pod.spec().node_name()),
      scheduler_name(pod.spec().scheduler_name()),
      priority(k8s::Priority(pod.spec())),
      gated(!pod.spec().scheduling_gates().empty()),
      terminating(k8s::IsTerminating(pod)),
      requests(
          Resources::From(k8s::PodRequests(pod, {.use_status = !pod.spec().node_name().empty()}), names)),
      ports(k8s::HostPorts(pod.spec())),
      tolerations(pod.spec().tolerations()),
      affinity(pod.spec()) {
  requests.pods = 1;
  scoring = ScoringOf(pod, requests);
  for (const corev1::PreferredSchedulingTerm& term :
       pod.spec().affinity().node_affinity().preferred_during_scheduling_ignored_during_execution()) {
    if (term.weight() != 0) preferred.push_back({term.weight(), k8s::NodeTerm(term.preference())});
  }
  if (const corev1::PodCondition* condition = k8s::FindCondition(pod.status(), k8s::kPodScheduled)) {
    condition_status = condition->status();
    condition_reason = condition->reason();
    condition_message = condition->message();
    condition_since = condition->last_transition_time();
  }
  // Only pods that wait for a node are compared with each other.
  if (node_name.empty()) signature = SignatureOf(pod, *this);
}

}  // namespace keelson::scheduler
