#include "controlplane/registry/strategies/pod_prepare.h"
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/k8s/disabled_fields.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::registry {
namespace {

// Keeps observedGeneration, which old clients do not know and would lose.
void KeepObservedGenerations(corev1::PodStatus& status, const corev1::PodStatus& old) {
  if (status.observed_generation() == 0 && old.observed_generation() != 0) {
    status.set_observed_generation(old.observed_generation());
  }
  for (corev1::PodCondition& condition : *status.mutable_conditions()) {
    if (condition.observed_generation() != 0) continue;
    for (const corev1::PodCondition& before : old.conditions()) {
      if (before.type() != condition.type()) continue;
      if (before.observed_generation() != 0) condition.set_observed_generation(before.observed_generation());
      break;
    }
  }
}

// podIP and podIPs hold the same; older kubelets send only one of them.
void SyncAddresses(corev1::PodStatus& status) {
  if (status.pod_ips_size() == 0 && !status.pod_ip().empty()) status.add_pod_ips()->set_ip(status.pod_ip());
  if (status.pod_ips_size() > 0) status.set_pod_ip(status.pod_ips(0).ip());
  if (status.host_ips_size() == 0 && !status.host_ip().empty()) {
    status.add_host_ips()->set_ip(status.host_ip());
  }
}

// Takes resources and resize policies from `wanted`. If its containers are not the pod's, takes them as
// they are, for validation to refuse.
template <typename Containers>
void TakeResources(const Containers& wanted, Containers& containers) {
  bool same = wanted.size() == containers.size();
  for (int i = 0; same && i < wanted.size(); ++i) same = wanted[i].name() == containers[i].name();
  if (!same) {
    containers = wanted;
    return;
  }
  for (int i = 0; i < wanted.size(); ++i) {
    if (wanted[i].has_resources()) {
      *containers[i].mutable_resources() = wanted[i].resources();
    } else {
      containers[i].clear_resources();
    }
    *containers[i].mutable_resize_policy() = wanted[i].resize_policy();
  }
}

void Resize(const corev1::PodSpec& wanted, corev1::PodSpec& spec) {
  TakeResources(wanted.containers(), *spec.mutable_containers());
  TakeResources(wanted.init_containers(), *spec.mutable_init_containers());
  if (wanted.has_resources()) {
    *spec.mutable_resources() = wanted.resources();
  } else {
    spec.clear_resources();
  }
}

class PodStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    auto& pod = static_cast<corev1::Pod&>(object);
    pod.clear_status();
    pod.mutable_metadata()->set_generation(1);
    pod.mutable_status()->set_phase("Pending");
    k8s::DropDisabledFields(*pod.mutable_spec(), nullptr);
    if (pod.spec().scheduling_gates_size() > 0) {
      corev1::PodCondition& condition = *pod.mutable_status()->add_conditions();
      condition.set_type("PodScheduled");
      condition.set_status("False");
      condition.set_reason("SchedulingGated");
      condition.set_message("Scheduling is blocked due to non-empty scheduling gates");
    }
    MergeLabelKeys(pod);
    SyncAppArmor(pod, context.warnings);
    pod.mutable_status()->set_qos_class(std::string(k8s::ComputeQosClass(pod)));
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    auto& pod = static_cast<corev1::Pod&>(object);
    k8s::DropDisabledFields(*pod.mutable_spec(), &static_cast<const corev1::Pod&>(old).spec());
    Strategy::PrepareUpdate(context, object, old);
  }

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    auto& pod = static_cast<corev1::Pod&>(object);
    const auto& before = static_cast<const corev1::Pod&>(old);
    if (part == Part::kStatus) {
      Strategy::PreparePart(context, part, object, old);
      // Old kubelets corrupt owner references, and so garbage collection.
      *pod.mutable_metadata()->mutable_owner_references() = before.metadata().owner_references();
      KeepStatus(*pod.mutable_status(), before.status());
      return;
    }
    corev1::Pod merged = before;
    merged.mutable_metadata()->set_resource_version(pod.metadata().resource_version());
    *merged.mutable_metadata()->mutable_managed_fields() = pod.metadata().managed_fields();
    if (part == Part::kEphemeralContainers) {
      *merged.mutable_spec()->mutable_ephemeral_containers() = pod.spec().ephemeral_containers();
    } else if (part == Part::kResize) {
      Resize(pod.spec(), *merged.mutable_spec());
    }
    if (SpecDiffers(merged, before)) {
      merged.mutable_metadata()->set_generation(before.metadata().generation() + 1);
    }
    pod = std::move(merged);
  }

  std::optional<int64_t> GracePeriod(const Message& object, std::optional<int64_t> asked) const override {
    const auto& pod = static_cast<const corev1::Pod&>(object);
    // No kubelet runs it (yet, or any more), so there is nothing to wait for.
    if (pod.spec().node_name().empty()) return 0;
    if (pod.status().phase() == "Failed" || pod.status().phase() == "Succeeded") return 0;
    int64_t period = asked.value_or(pod.spec().has_termination_grace_period_seconds()
                                        ? pod.spec().termination_grace_period_seconds()
                                        : 0);
    return period < 0 ? 1 : period;
  }

 private:
  // Keeps fields that clients may not know.
  static void KeepStatus(corev1::PodStatus& status, const corev1::PodStatus& old) {
    if (status.qos_class().empty() && !old.qos_class().empty()) status.set_qos_class(old.qos_class());
    if (status.resource_claim_statuses().empty()) {
      *status.mutable_resource_claim_statuses() = old.resource_claim_statuses();
    }
    if (!status.has_extended_resource_claim_status() && old.has_extended_resource_claim_status()) {
      *status.mutable_extended_resource_claim_status() = old.extended_resource_claim_status();
    }
    KeepObservedGenerations(status, old);
    SyncAddresses(status);
  }
};

}  // namespace

std::unique_ptr<Strategy> MakePodStrategy(const ResourceInfo& info) {
  return std::make_unique<PodStrategy>(info);
}

}  // namespace keelson::registry
