#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/k8s/qos.h"

namespace keelson::registry {
namespace {

class PodStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    auto& pod = static_cast<corev1::Pod&>(object);
    pod.clear_status();
    pod.mutable_metadata()->set_generation(1);
    pod.mutable_status()->set_phase("Pending");
    pod.mutable_status()->set_qos_class(std::string(k8s::ComputeQosClass(pod)));
    if (pod.spec().scheduling_gates_size() == 0) return;
    corev1::PodCondition& condition = *pod.mutable_status()->add_conditions();
    condition.set_type("PodScheduled");
    condition.set_status("False");
    condition.set_reason("SchedulingGated");
    condition.set_message("Scheduling is blocked due to non-empty scheduling gates");
    *condition.mutable_last_transition_time() = api::ToTime(context.clock.Now());
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    auto& pod = static_cast<corev1::Pod&>(object);
    const auto& before = static_cast<const corev1::Pod&>(old);
    if (before.spec().scheduling_gates_size() == 0 || pod.spec().scheduling_gates_size() > 0) return;
    // The last gate is gone: the scheduler says the rest.
    auto& conditions = *pod.mutable_status()->mutable_conditions();
    for (int i = conditions.size() - 1; i >= 0; --i) {
      if (conditions[i].type() == "PodScheduled" && conditions[i].reason() == "SchedulingGated")
        conditions.DeleteSubrange(i, 1);
    }
  }

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    auto& pod = static_cast<corev1::Pod&>(object);
    const auto& before = static_cast<const corev1::Pod&>(old);
    if (part == Part::kStatus) {
      Strategy::PreparePart(context, part, object, old);
      *pod.mutable_metadata()->mutable_owner_references() = before.metadata().owner_references();
      if (!pod.status().has_qos_class() && before.status().has_qos_class())
        pod.mutable_status()->set_qos_class(before.status().qos_class());
      SyncAddresses(*pod.mutable_status());
      return;
    }
    corev1::Pod merged = before;
    merged.mutable_metadata()->set_resource_version(pod.metadata().resource_version());
    if (part == Part::kEphemeralContainers) {
      *merged.mutable_spec()->mutable_ephemeral_containers() = pod.spec().ephemeral_containers();
    } else if (part == Part::kResize) {
      Resize(pod, merged);
    }
    if (SpecDiffers(merged, before))
      merged.mutable_metadata()->set_generation(before.metadata().generation() + 1);
    pod = std::move(merged);
  }

  std::optional<int64_t> GracePeriod(const Message& object, std::optional<int64_t> asked) const override {
    const auto& pod = static_cast<const corev1::Pod&>(object);
    // Nobody runs it (yet, or any more): there is nothing to wait for.
    if (pod.spec().node_name().empty()) return 0;
    if (pod.status().phase() == "Failed" || pod.status().phase() == "Succeeded") return 0;
    int64_t period = asked.value_or(pod.spec().has_termination_grace_period_seconds()
                                        ? pod.spec().termination_grace_period_seconds()
                                        : 0);
    return period < 0 ? 1 : period;
  }

 private:
  // podIP and podIPs say the same; older kubelets send only one of them.
  static void SyncAddresses(corev1::PodStatus& status) {
    if (status.pod_ips_size() == 0 && !status.pod_ip().empty()) status.add_pod_ips()->set_ip(status.pod_ip());
    if (status.pod_ips_size() > 0) status.set_pod_ip(status.pod_ips(0).ip());
    if (status.host_ips_size() == 0 && !status.host_ip().empty())
      status.add_host_ips()->set_ip(status.host_ip());
  }

  static void Resize(const corev1::Pod& wanted, corev1::Pod& merged) {
    for (auto& container : *merged.mutable_spec()->mutable_containers()) {
      for (const auto& from : wanted.spec().containers()) {
        if (from.name() != container.name()) continue;
        *container.mutable_resources() = from.resources();
        *container.mutable_resize_policy() = from.resize_policy();
      }
    }
    for (auto& container : *merged.mutable_spec()->mutable_init_containers()) {
      for (const auto& from : wanted.spec().init_containers()) {
        if (from.name() == container.name()) *container.mutable_resources() = from.resources();
      }
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> MakePodStrategy(const ResourceInfo& info) {
  return std::make_unique<PodStrategy>(info);
}

}  // namespace keelson::registry
