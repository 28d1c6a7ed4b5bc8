#include "kubelet/pod/actions.h"

#include <algorithm>

#include "kubelet/container/container_hash.h"
#include "kubelet/container/restart.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

namespace {

using cri::ContainerState;

bool Failed(const ProbeResults& probes, ProbeKind kind, const std::string& id) {
  auto result = probes.Get(kind, id);
  return result && !*result;
}

bool Started(const corev1::Container& container, const ContainerRecord& record, const ProbeResults& probes) {
  if (record.state != ContainerState::kRunning) return false;
  return !container.has_startup_probe() || probes.Get(ProbeKind::kStartup, record.id).value_or(false);
}

// Why a running container has to go, if it has to.
KillAction CheckRunning(const corev1::Container& container, const ContainerRecord& record,
                        const ProbeResults& probes) {
  KillAction kill{record.id, record.name, "", KillReason::kNone};
  if (!record.hash.empty() && !IsMadeFrom(container, record.hash)) {
    kill.reason = KillReason::kChanged;
    kill.message = "Container " + record.name + " definition changed, will be restarted";
  } else if (Failed(probes, ProbeKind::kLiveness, record.id)) {
    kill.reason = KillReason::kLivenessProbe;
    kill.message = "Container " + record.name + " failed liveness probe, will be restarted";
  } else if (Failed(probes, ProbeKind::kStartup, record.id)) {
    kill.reason = KillReason::kStartupProbe;
    kill.message = "Container " + record.name + " failed startup probe, will be restarted";
  }
  return kill;
}

class Planner {
 public:
  Planner(const corev1::Pod& pod, const PodRuntimeStatus& status, const ProbeResults& probes)
      : spec_(pod.spec()), status_(status), probes_(probes) {}

  PodActions Plan() {
    const cri::SandboxStatus* sandbox = status_.ReadySandbox();
    if (!SandboxUsable(sandbox)) {
      PlanNewSandbox();
      return std::move(actions_);
    }
    actions_.sandbox_id = sandbox->id;
    if (ShouldRestartAll(spec_, status_)) {
      actions_.restart_all_containers = true;
      return std::move(actions_);
    }
    for (const auto& ephemeral : spec_.ephemeral_containers()) {
      const std::string& name = ephemeral.ephemeral_container_common().name();
      if (!status_.Latest(name)) actions_.ephemeral_containers_to_start.push_back(name);
    }
    bool app_began = AppBegan();
    bool go_on = app_began ? KeepSidecars() : PlanInit();
    if (!go_on) return std::move(actions_);
    PlanApp();
    return std::move(actions_);
  }

 private:
  bool SandboxUsable(const cri::SandboxStatus* sandbox) const {
    if (!sandbox) return false;
    cri::NamespaceMode wanted = spec_.host_network() ? cri::NamespaceMode::kNode : cri::NamespaceMode::kPod;
    if (sandbox->network != wanted) return false;
    return spec_.host_network() || !sandbox->ips.empty();
  }

  void PlanNewSandbox() {
    actions_.kill_pod = !status_.sandboxes.empty() || status_.AnyRunning();
    actions_.sandbox_attempt = status_.sandboxes.empty() ? 0 : status_.sandboxes.front().metadata.attempt + 1;
    bool never = spec_.restart_policy() == "Never" &&
                 std::none_of(spec_.containers().begin(), spec_.containers().end(),
                              [](const auto& container) { return container.has_restart_policy(); });
    if (never && actions_.sandbox_attempt > 0 && !status_.containers.empty()) return;  // it had its one run
    std::vector<std::string> app;
    for (const auto& container : spec_.containers()) {
      if (ShouldRestart(spec_, container, status_.Latest(container.name()))) app.push_back(container.name());
    }
    if (app.empty()) return;
    actions_.create_sandbox = true;
    // A pod in a new sandbox starts again with its first init container.
    if (spec_.init_containers_size() > 0) {
      actions_.containers_to_start = {spec_.init_containers(0).name()};
    } else {
      actions_.containers_to_start = std::move(app);
    }
  }

  const ContainerRecord* InSandbox(const std::string& name) const {
    const ContainerRecord* record = status_.Latest(name);
    return record && record->sandbox_id == actions_.sandbox_id ? record : nullptr;
  }

  // Once an app container was made in this sandbox, the init phase is over, also if records of init
  // containers have been removed since.
  bool AppBegan() const {
    return std::any_of(spec_.containers().begin(), spec_.containers().end(),
                       [&](const auto& container) { return InSandbox(container.name()) != nullptr; });
  }

  bool KeepSidecars() {
    if (AppDone()) return true;
    for (const auto& container : spec_.init_containers()) {
      if (k8s::IsSidecar(container)) PlanSidecar(container, InSandbox(container.name()));
    }
    return true;
  }

  bool AppDone() const {
    return std::all_of(spec_.containers().begin(), spec_.containers().end(), [&](const auto& container) {
      const ContainerRecord* record = status_.Latest(container.name());
      return record && record->state == ContainerState::kExited && !ShouldRestart(spec_, container, record);
    });
  }

  // Running and well: true.
  bool PlanSidecar(const corev1::Container& container, const ContainerRecord* record) {
    if (!record || record->state == ContainerState::kExited || record->state == ContainerState::kCreated) {
      actions_.containers_to_start.push_back(container.name());
      return false;
    }
    KillAction kill = CheckRunning(container, *record, probes_);
    if (record->state == ContainerState::kUnknown) kill.reason = KillReason::kUnknownState;
    if (kill.reason == KillReason::kNone) return Started(container, *record, probes_);
    actions_.containers_to_kill.push_back(std::move(kill));
    actions_.containers_to_start.push_back(container.name());
    return false;
  }

  // True when the init phase is over.
  bool PlanInit() {
    for (const auto& container : spec_.init_containers()) {
      const ContainerRecord* record = InSandbox(container.name());
      if (k8s::IsSidecar(container)) {
        if (!PlanSidecar(container, record)) return false;
        continue;
      }
      if (!record || record->state == ContainerState::kCreated) {
        actions_.containers_to_start.push_back(container.name());
        return false;
      }
      if (record->state == ContainerState::kRunning) return false;
      if (record->state == ContainerState::kUnknown) {
        actions_.containers_to_kill.push_back({record->id, record->name,
                                               "Init container is in unknown state, try killing it "
                                               "before restart",
                                               KillReason::kUnknownState});
        actions_.containers_to_start.push_back(container.name());
        return false;
      }
      if (record->exit_code == 0) continue;
      if (ShouldRestart(spec_, container, record)) {
        actions_.containers_to_start.push_back(container.name());
      } else {
        actions_.kill_pod = true;  // the pod has failed
      }
      return false;
    }
    return true;
  }

  void PlanApp() {
    int keep = 0;
    for (const auto& container : spec_.containers()) {
      const ContainerRecord* record = status_.Latest(container.name());
      if (!record || record->state != ContainerState::kRunning) {
        if (!ShouldRestart(spec_, container, record)) continue;
        if (record && record->state == ContainerState::kUnknown) {
          actions_.containers_to_kill.push_back(
              {record->id, record->name, "Container is in unknown state, try killing it before restart",
               KillReason::kUnknownState});
        }
        actions_.containers_to_start.push_back(container.name());
        continue;
      }
      KillAction kill = CheckRunning(container, *record, probes_);
      if (kill.reason == KillReason::kNone) {
        ++keep;
        continue;
      }
      bool again = kill.reason == KillReason::kChanged || RestartPolicy(spec_, container) != "Never";
      if (!again) {
        kill.message = kill.message.substr(0, kill.message.rfind(',')) + ", will not be restarted";
        ++keep;  // its sandbox stays until it is down
      }
      if (again) actions_.containers_to_start.push_back(container.name());
      actions_.containers_to_kill.push_back(std::move(kill));
    }
    if (keep == 0 && actions_.containers_to_start.empty() && actions_.containers_to_kill.empty()) {
      actions_.kill_pod = true;
    }
  }

  const corev1::PodSpec& spec_;
  const PodRuntimeStatus& status_;
  const ProbeResults& probes_;
  PodActions actions_;
};

}  // namespace

bool ShouldRestart(const corev1::PodSpec& spec, const corev1::Container& container,
                   const ContainerRecord* record) {
  if (!record || record->state == ContainerState::kCreated) return true;  // never ran
  if (record->state == ContainerState::kRunning) return false;
  if (record->state == ContainerState::kUnknown) return true;
  return MayRestart(spec, container, record->exit_code);
}

bool ShouldRestartAll(const corev1::PodSpec& spec, const PodRuntimeStatus& status) {
  auto asks = [&status](const corev1::Container& container) {
    const ContainerRecord* record = status.Latest(container.name());
    if (!record || record->state != ContainerState::kExited) return false;
    const auto* rule = RestartRule(container, record->exit_code);
    return rule && rule->action() == "RestartAllContainers";
  };
  return std::any_of(spec.init_containers().begin(), spec.init_containers().end(), asks) ||
         std::any_of(spec.containers().begin(), spec.containers().end(), asks);
}

bool IsInitialized(const corev1::Pod& pod, const PodRuntimeStatus& status, const ProbeResults& probes) {
  for (const auto& container : pod.spec().containers()) {
    if (const ContainerRecord* record = status.Latest(container.name())) {
      if (status.sandboxes.empty() || record->sandbox_id == status.sandboxes.front().id) return true;
    }
  }
  for (const auto& container : pod.spec().init_containers()) {
    const ContainerRecord* record = status.Latest(container.name());
    if (!record) return false;
    if (k8s::IsSidecar(container)) {
      if (!Started(container, *record, probes)) return false;
    } else if (record->state != ContainerState::kExited || record->exit_code != 0) {
      return false;
    }
  }
  return true;
}

PodActions ComputePodActions(const corev1::Pod& pod, const PodRuntimeStatus& status,
                             const ProbeResults& probes) {
  return Planner(pod, status, probes).Plan();
}

}  // namespace keelson::kubelet
