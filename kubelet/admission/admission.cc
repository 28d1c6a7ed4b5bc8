#include "kubelet/admission/admission.h"

#include <algorithm>

#include "kubelet/container/critical.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

using Pods = std::vector<const corev1::Pod*>;

constexpr std::string_view kOutOf = "OutOf";

int ClassRank(const corev1::Pod& pod) {
  const std::string_view qos = k8s::ComputeQosClass(pod);
  return qos == k8s::kBestEffort ? 0 : qos == k8s::kBurstable ? 1 : 2;
}

bool LacksResourcesOnly(const std::vector<k8s::AdmitFailure>& failures) {
  return std::all_of(failures.begin(), failures.end(), [](const k8s::AdmitFailure& failure) {
    return failure.reason.compare(0, kOutOf.size(), kOutOf) == 0;
  });
}

// Of the first resource that is short: "OutOfcpu" is about cpu.
void CountPreemption(const k8s::AdmitFailure& failure) {
  static metrics::Family& preemptions =
      metrics::Counter("kubelet_preemptions", "Cumulative number of pod preemptions by preemption resource",
                       {"preemption_signal"});
  preemptions.With({failure.reason.substr(kOutOf.size())}).Increment();
}

Pods Without(const Pods& pods, const Pods& gone) {
  Pods out;
  for (const corev1::Pod* pod : pods) {
    if (std::find(gone.begin(), gone.end(), pod) == gone.end()) out.push_back(pod);
  }
  return out;
}

}  // namespace

std::vector<const corev1::Pod*> PlanPreemption(const corev1::Pod& pod, const corev1::Node& node,
                                               const std::vector<const corev1::Pod*>& others) {
  Pods victims, candidates;
  for (const corev1::Pod* other : others) {
    const bool lower = k8s::IsStatic(pod) ? !k8s::IsStatic(*other) ||
                                                k8s::Priority(other->spec()) < k8s::Priority(pod.spec())
                                          : k8s::Priority(other->spec()) < k8s::Priority(pod.spec());
    if (!IsCriticalPod(*other) && lower) candidates.push_back(other);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const corev1::Pod* a, const corev1::Pod* b) {
    return std::make_pair(ClassRank(*a), k8s::Priority(a->spec())) <
           std::make_pair(ClassRank(*b), k8s::Priority(b->spec()));
  });
  auto fits = [&] { return k8s::CheckAdmission(pod, node, Without(others, victims)).empty(); };
  for (const corev1::Pod* candidate : candidates) {
    if (fits()) break;
    victims.push_back(candidate);
  }
  if (!fits()) return {};
  // The last ones may have freed enough for all: the earlier are then spared.
  for (size_t i = 0; i < victims.size();) {
    const corev1::Pod* spared = victims[i];
    victims.erase(victims.begin() + static_cast<ptrdiff_t>(i));
    if (fits()) continue;
    victims.insert(victims.begin() + static_cast<ptrdiff_t>(i), spared);
    ++i;
  }
  return victims;
}

corev1::Node Admission::Node(const std::string& uid) const {
  std::shared_ptr<const corev1::Node> known = deps_.node();
  corev1::Node node = known ? *known : own_;
  // The API may not have our capacity yet; we have.
  k8s::ResourceList allocatable = k8s::ToResourceList(node.status().allocatable());
  for (const auto& [name, amount] : allocatable_) allocatable[name] = amount;
  if (deps_.add_devices) deps_.add_devices(uid, allocatable);
  for (const auto& [name, amount] : allocatable) {
    (*node.mutable_status()->mutable_allocatable())[name] = amount.ToQuantity();
  }
  return node;
}

std::optional<k8s::AdmitFailure> Admission::Admit(const corev1::Pod& pod) const {
  if (auto failure = deps_.evictions.Admit(pod)) return failure;
  const corev1::Node node = Node(pod.metadata().uid());
  const std::vector<PodPtr> active = deps_.active(pod.metadata().uid());
  Pods others;
  for (const PodPtr& other : active) others.push_back(other.get());
  const auto failures = k8s::CheckAdmission(pod, node, others);
  if (failures.empty()) return std::nullopt;
  if (!IsCriticalPod(pod) || !LacksResourcesOnly(failures)) return failures.front();
  const Pods victims = PlanPreemption(pod, node, others);
  if (victims.empty()) {
    return k8s::AdmitFailure{
        "UnexpectedAdmissionError",
        "Unexpected error while attempting to recover from admission failure: preemption: "
        "error finding a set of pods to preempt: no set of running pods found to reclaim "
        "resources"};
  }
  for (const corev1::Pod* victim : victims) {
    CountPreemption(failures.front());
    deps_.preempt(*victim);
  }
  return std::nullopt;
}

}  // namespace keelson::kubelet
