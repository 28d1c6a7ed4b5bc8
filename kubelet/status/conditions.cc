#include "kubelet/status/conditions.h"

#include <vector>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

bool RestartsAll(const corev1::PodSpec& spec) {
  bool found = false;
  k8s::ForEachContainer(spec, [&found](const corev1::Container& container) {
    for (const auto& rule : container.restart_policy_rules()) {
      found = found || rule.action() == "RestartAllContainers";
    }
  });
  return found;
}

std::string Names(const char* what, const std::vector<std::string>& names) {
  std::string out = what;
  out += ": [";
  for (size_t i = 0; i < names.size(); ++i) out += (i ? " " : "") + names[i];
  return out + "]";
}

class Conditions {
 public:
  Conditions(const corev1::PodSpec& spec, WallTime now, corev1::PodStatus& status)
      : spec_(spec),
        now_(now),
        status_(status),
        succeeded_(status.phase() == "Succeeded"),
        ended_(succeeded_ || status.phase() == "Failed") {}

  void Set(std::string_view type, bool value, const std::string& reason = "",
           const std::string& message = "") {
    SetOwnCondition(type, value, reason, message, now_, status_);
  }

  void FillInitialized(bool initialized) {
    std::vector<std::string> incomplete;
    for (int i = 0; i < spec_.init_containers_size() && !initialized; ++i) {
      const auto& container = status_.init_container_statuses(i);
      bool done = k8s::IsSidecar(spec_.init_containers(i)) ? container.started() : container.ready();
      if (!done) incomplete.push_back(container.name());
    }
    if (incomplete.empty()) return Set(k8s::kPodInitialized, true, succeeded_ ? "PodCompleted" : "");
    Set(k8s::kPodInitialized, false, "ContainersNotInitialized",
        Names("containers with incomplete status", incomplete));
  }

  void FillReady() {
    if (ended_) {
      for (std::string_view type : {k8s::kContainersReady, k8s::kPodReady}) {
        Set(type, false, succeeded_ ? "PodCompleted" : "PodFailed");
      }
      return;
    }
    if (const std::vector<std::string> unready = Unready(); !unready.empty()) {
      for (std::string_view type : {k8s::kContainersReady, k8s::kPodReady}) {
        Set(type, false, "ContainersNotReady", Names("containers with unready status", unready));
      }
      return;
    }
    Set(k8s::kContainersReady, true);
    const std::string missing = MissingGates();
    if (missing.empty()) return Set(k8s::kPodReady, true);
    Set(k8s::kPodReady, false, "ReadinessGatesNotReady", missing);
  }

 private:
  std::vector<std::string> Unready() const {
    std::vector<std::string> unready;
    for (int i = 0; i < spec_.init_containers_size(); ++i) {
      if (k8s::IsSidecar(spec_.init_containers(i)) && !status_.init_container_statuses(i).ready()) {
        unready.push_back(spec_.init_containers(i).name());
      }
    }
    for (const auto& container : status_.container_statuses()) {
      if (!container.ready()) unready.push_back(container.name());
    }
    return unready;
  }

  std::string MissingGates() const {
    std::string missing;
    for (const auto& gate : spec_.readiness_gates()) {
      const auto* condition = k8s::FindCondition(status_, gate.condition_type());
      if (condition && condition->status() == "True") continue;
      if (!missing.empty()) missing += ", ";
      missing += condition ? "the status of pod readiness gate \"" + gate.condition_type() +
                                 "\" is not \"True\", but " + condition->status()
                           : "corresponding condition of pod readiness gate \"" + gate.condition_type() +
                                 "\" does not exist.";
    }
    return missing;
  }

  const corev1::PodSpec& spec_;
  const WallTime now_;
  corev1::PodStatus& status_;
  const bool succeeded_, ended_;
};

}  // namespace

void SetOwnCondition(std::string_view type, bool value, const std::string& reason, const std::string& message,
                     WallTime now, corev1::PodStatus& status) {
  corev1::PodCondition condition;
  condition.set_type(std::string(type));
  condition.set_status(value ? "True" : "False");
  if (!reason.empty()) condition.set_reason(reason);
  if (!message.empty()) condition.set_message(message);
  if (status.observed_generation()) condition.set_observed_generation(status.observed_generation());
  k8s::SetCondition(status, std::move(condition), now);
}

void FillConditions(const StatusInput& input, corev1::PodStatus& status) {
  const corev1::PodSpec& spec = input.pod.spec();
  Conditions conditions(spec, input.now, status);
  const cri::SandboxStatus* sandbox = input.runtime.ReadySandbox();
  const bool sandbox_ready = sandbox && (spec.host_network() || !sandbox->ips.empty());
  conditions.Set(k8s::kPodReadyToStartContainers, sandbox_ready && !input.terminal && !input.lacks_volumes);
  conditions.FillInitialized(input.initialized);
  conditions.FillReady();
  conditions.Set(k8s::kPodScheduled, true);
  if (RestartsAll(spec)) conditions.Set("AllContainersRestarting", input.restarting_all);
}

void FillReadyConditions(const corev1::PodSpec& spec, WallTime now, corev1::PodStatus& status) {
  Conditions(spec, now, status).FillReady();
}

}  // namespace keelson::kubelet
