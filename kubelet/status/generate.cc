#include "kubelet/status/generate.h"

#include <algorithm>

#include "kubelet/container/container_config.h"
#include "kubelet/container/restart.h"
#include "lib/api/meta.h"
#include "lib/k8s/pod_resources.h"
#include "lib/k8s/pod_util.h"
#include "lib/k8s/qos.h"

namespace keelson::kubelet {

namespace {

using cri::ContainerState;
using Statuses = google::protobuf::RepeatedPtrField<corev1::ContainerStatus>;

metav1::Time TimeOfNanos(int64_t nanos) {
  return api::ToTime(
      WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos))));
}

bool RestartsAll(const corev1::PodSpec& spec) {
  bool found = false;
  k8s::ForEachContainer(spec, [&found](const corev1::Container& container) {
    for (const auto& rule : container.restart_policy_rules())
      found = found || rule.action() == "RestartAllContainers";
  });
  return found;
}

class Generator {
 public:
  explicit Generator(const StatusInput& in) : in_(in), spec_(in.pod.spec()) {}

  corev1::PodStatus Generate() {
    out_ = in_.pod.status();
    out_.clear_container_statuses();
    out_.clear_init_container_statuses();
    out_.clear_ephemeral_container_statuses();
    if (in_.pod.metadata().generation()) out_.set_observed_generation(in_.pod.metadata().generation());
    out_.set_qos_class(std::string(k8s::QosClass(in_.pod)));
    if (!out_.has_start_time()) *out_.mutable_start_time() = api::ToTime(in_.now);
    FillAddresses();
    for (const auto& container : spec_.init_containers())
      Fill(container, true, *out_.add_init_container_statuses());
    for (const auto& container : spec_.containers()) Fill(container, false, *out_.add_container_statuses());
    for (const auto& container : spec_.ephemeral_containers())
      Fill(FromEphemeral(container), false, *out_.add_ephemeral_container_statuses());
    CutMessages();
    FillPhase();
    FillConditions();
    return std::move(out_);
  }

 private:
  std::string ContainerId(const std::string& id) const { return in_.runtime_name + "://" + id; }

  void FillAddresses() {
    if (!in_.node_ips.empty()) {
      out_.set_host_ip(in_.node_ips.front());
      out_.clear_host_ips();
      for (const std::string& ip : in_.node_ips) out_.add_host_ips()->set_ip(ip);
    }
    std::vector<std::string> ips = spec_.host_network() ? in_.node_ips : in_.runtime.Ips();
    if (ips.empty()) return;  // a sandbox that is gone had the addresses that the status still shows
    out_.set_pod_ip(ips.front());
    out_.clear_pod_ips();
    for (const std::string& ip : ips) out_.add_pod_ips()->set_ip(ip);
  }

  const corev1::ContainerStatus* Old(const std::string& name) const {
    return k8s::FindContainerStatus(in_.pod.status(), name);
  }

  void FillTerminated(const ContainerRecord& record, corev1::ContainerStateTerminated& out) const {
    out.set_exit_code(record.exit_code);
    out.set_reason(!record.reason.empty() ? record.reason : record.exit_code == 0 ? "Completed" : "Error");
    std::string message = in_.message ? in_.message(record) : std::string();
    if (message.empty()) message = record.message;
    if (!message.empty()) out.set_message(message);
    if (record.started_at > 0) *out.mutable_started_at() = TimeOfNanos(record.started_at);
    *out.mutable_finished_at() = TimeOfNanos(record.finished_at);
    out.set_container_id(ContainerId(record.id));
  }

  void Fill(const corev1::Container& container, bool init, corev1::ContainerStatus& out) {
    out.set_name(container.name());
    out.set_image(container.image());
    const ContainerRecord* record = in_.runtime.Latest(container.name());
    auto waiting = in_.waiting.find(container.name());
    if (!record) {
      FillWithoutRecord(container, init, waiting, out);
    } else {
      FillFromRecord(container, *record, out);
      if (const ContainerRecord* previous = in_.runtime.Previous(container.name()))
        if (previous->state == ContainerState::kExited)
          FillTerminated(*previous, *out.mutable_last_state()->mutable_terminated());
      // A run has ended and the next one is held up: the end moves into lastState. The last run's end stays.
      const bool over =
          record->state == ContainerState::kExited && !MayRestart(spec_, container, record->exit_code);
      if (waiting != in_.waiting.end() && record->state != ContainerState::kRunning && !in_.terminal &&
          !over) {
        if (out.state().has_terminated()) *out.mutable_last_state() = out.state();
        out.clear_state();
        out.mutable_state()->mutable_waiting()->set_reason(waiting->second.reason);
        if (!waiting->second.message.empty())
          out.mutable_state()->mutable_waiting()->set_message(waiting->second.message);
      }
    }
    FillReady(container, record, init, out);
    if (container.has_resources() &&
        (container.resources().requests_size() || container.resources().limits_size())) {
      *out.mutable_resources() = container.resources();
      *out.mutable_allocated_resources() = container.resources().requests();
    } else {
      out.mutable_resources();
    }
    for (const auto& mount : container.volume_mounts())
      FillMount(mount, Old(container.name()), *out.add_volume_mounts());
  }

  void FillMount(const corev1::VolumeMount& mount, const corev1::ContainerStatus* old,
                 corev1::VolumeMountStatus& out) const {
    out.set_name(mount.name());
    out.set_mount_path(mount.mount_path());
    if (mount.read_only()) {
      out.set_read_only(true);
      bool recursive = RecursiveReadOnly(mount, in_.recursive_read_only).value_or(false);
      out.set_recursive_read_only(recursive ? "Enabled" : "Disabled");
    }
    if (!in_.image_volumes) return;
    auto image = in_.image_volumes->find(mount.name());
    if (image != in_.image_volumes->end())
      out.mutable_volume_status()->mutable_image()->set_image_ref(image->second);
    else if (old)  // found out by a kubelet before this one
      for (const auto& known : old->volume_mounts())
        if (known.mount_path() == mount.mount_path() && known.has_volume_status())
          *out.mutable_volume_status() = known.volume_status();
  }

  // Messages of all containers together stay below 12 KiB.
  void CutMessages() {
    constexpr size_t kAll = 12 << 10;
    size_t containers = static_cast<size_t>(spec_.init_containers_size() + spec_.containers_size() +
                                            spec_.ephemeral_containers_size());
    size_t share = containers > 0 ? kAll / containers : kAll;
    auto cut = [share](Statuses* statuses) {
      for (auto& status : *statuses) {
        for (auto* state : {status.mutable_state(), status.mutable_last_state()})
          if (state->has_terminated() && state->terminated().message().size() > share)
            state->mutable_terminated()->mutable_message()->resize(share);
      }
    };
    cut(out_.mutable_init_container_statuses());
    cut(out_.mutable_container_statuses());
    cut(out_.mutable_ephemeral_container_statuses());
  }

  void FillWithoutRecord(const corev1::Container& container, bool init,
                         std::map<std::string, WaitingReason>::const_iterator waiting,
                         corev1::ContainerStatus& out) {
    const corev1::ContainerStatus* old = Old(container.name());
    if (old) out.set_restart_count(old->restart_count());
    // The record may have been removed after the end was reported; the API remembers it for us.
    bool ended = old && old->state().has_terminated();
    if (ended && (in_.terminal || init)) {
      out = *old;
      return;
    }
    if (in_.terminal) {  // it never ran, and never will
      if (old && old->state().has_running()) {
        auto& terminated = *out.mutable_state()->mutable_terminated();
        terminated.set_exit_code(137);
        terminated.set_reason("ContainerStatusUnknown");
        terminated.set_message("The container could not be located when the pod was terminated");
        out.set_container_id(old->container_id());
        out.set_image_id(old->image_id());
        return;
      }
      out.mutable_state()->mutable_waiting()->set_reason(DefaultWaiting(init));
      return;
    }
    if (ended)
      *out.mutable_last_state() = old->state();
    else if (old && old->last_state().has_terminated())
      *out.mutable_last_state() = old->last_state();
    auto& state = *out.mutable_state()->mutable_waiting();
    state.set_reason(waiting != in_.waiting.end() ? waiting->second.reason : DefaultWaiting(init));
    if (waiting != in_.waiting.end() && !waiting->second.message.empty())
      state.set_message(waiting->second.message);
  }

  std::string DefaultWaiting(bool init) const {
    return spec_.init_containers_size() > 0 && (init || !in_.initialized) ? "PodInitializing"
                                                                          : "ContainerCreating";
  }

  void FillFromRecord(const corev1::Container&, const ContainerRecord& record, corev1::ContainerStatus& out) {
    if (!record.image.empty() && record.image.compare(0, 7, "sha256:") != 0) out.set_image(record.image);
    out.set_image_id(record.image_ref);
    out.set_container_id(ContainerId(record.id));
    out.set_restart_count(record.restart_count);
    if (!record.stop_signal.empty()) out.set_stop_signal(record.stop_signal);
    if (record.user && record.state == ContainerState::kRunning) {
      auto& user = *out.mutable_user()->mutable_linux();
      user.set_uid(record.user->uid);
      user.set_gid(record.user->gid);
      for (int64_t group : record.user->supplemental_groups) user.add_supplemental_groups(group);
    }
    switch (record.state) {
      case ContainerState::kCreated:
        out.mutable_state()->mutable_waiting()->set_reason("ContainerCreating");
        break;
      case ContainerState::kRunning:
        *out.mutable_state()->mutable_running()->mutable_started_at() = TimeOfNanos(record.started_at);
        break;
      case ContainerState::kExited:
        FillTerminated(record, *out.mutable_state()->mutable_terminated());
        break;
      case ContainerState::kUnknown: {
        auto& terminated = *out.mutable_state()->mutable_terminated();
        terminated.set_exit_code(137);
        terminated.set_reason("ContainerStatusUnknown");
        terminated.set_message(
            "The container could not be located when the pod was deleted.  The container used to "
            "be Running");
        break;
      }
    }
  }

  void FillReady(const corev1::Container& container, const ContainerRecord* record, bool init,
                 corev1::ContainerStatus& out) {
    bool running = record && record->state == ContainerState::kRunning && out.state().has_running();
    bool started = running && ContainerStarted(container, record->id, in_.probes);
    if (init && !k8s::IsSidecar(container)) {
      out.set_started(running);
      bool done = out.state().has_terminated() && out.state().terminated().exit_code() == 0;
      if (done) out.set_ready(true);
      return;
    }
    out.set_started(started);
    if (running && ContainerReady(container, record->id, in_.probes)) out.set_ready(true);
  }

  // ---- phase ----
  struct Counts {
    int waiting = 0, running = 0, stopped = 0, succeeded = 0, restartable = 0;
  };

  void FillPhase() {
    const std::string& old = in_.pod.status().phase();
    if (old == "Failed" || old == "Succeeded") {
      out_.set_phase(old);  // an end is an end
      return;
    }
    if (in_.restarting_all && !in_.terminal)
      out_.set_phase(old.empty() ? "Pending" : old);  // that all have been ended is no end
    else
      out_.set_phase(Phase());
  }

  std::string Phase() const {
    bool pending_init = false, failed_init = false;
    for (int i = 0; i < spec_.init_containers_size(); ++i) {
      const auto& status = out_.init_container_statuses(i);
      if (k8s::IsSidecar(spec_.init_containers(i))) {
        if (!status.state().has_running() || !status.started()) pending_init = true;
      } else if (status.state().has_terminated()) {
        if (status.state().terminated().exit_code() == 0) continue;
        if (MayRestart(spec_, spec_.init_containers(i), status.state().terminated().exit_code()))
          pending_init = true;
        else
          failed_init = true;
      } else if (status.last_state().has_terminated() && status.state().has_waiting()) {
        if (status.last_state().terminated().exit_code() != 0) pending_init = true;
      } else {
        pending_init = true;
      }
    }
    Counts n = Count();
    if (in_.terminal)
      return n.succeeded > 0 && n.succeeded == spec_.containers_size() ? "Succeeded" : "Failed";
    if (failed_init && !in_.initialized) return "Failed";
    if (pending_init && !in_.initialized) return "Pending";
    if (n.waiting > 0) return "Pending";
    if (n.running > 0) return "Running";
    if (n.stopped == 0) return "Pending";
    if (n.restartable > 0) return "Running";
    return n.stopped == n.succeeded ? "Succeeded" : "Failed";
  }

  Counts Count() const {
    Counts n;
    for (int i = 0; i < spec_.containers_size(); ++i) {
      const auto& status = out_.container_statuses(i);
      const auto& state = status.state();
      const auto& ended = state.has_terminated() ? state : status.last_state();
      const bool restartable = !state.has_running() && ended.has_terminated() &&
                               MayRestart(spec_, spec_.containers(i), ended.terminated().exit_code());
      if (restartable) ++n.restartable;
      if (state.has_running()) {
        ++n.running;
      } else if (state.has_terminated()) {
        ++n.stopped;
        if (state.terminated().exit_code() == 0) ++n.succeeded;
      } else if (status.last_state().has_terminated() && (restartable || in_.runtime.Latest(status.name()))) {
        ++n.stopped;
      } else {  // a run that was forgotten, with those of all others, is followed by one
        ++n.waiting;
      }
    }
    return n;
  }

  // ---- conditions ----
  void Set(std::string_view type, bool value, const std::string& reason = "",
           const std::string& message = "") {
    corev1::PodCondition condition;
    condition.set_type(std::string(type));
    condition.set_status(value ? "True" : "False");
    if (!reason.empty()) condition.set_reason(reason);
    if (!message.empty()) condition.set_message(message);
    if (in_.pod.metadata().generation()) condition.set_observed_generation(in_.pod.metadata().generation());
    k8s::SetCondition(out_, std::move(condition), in_.now);
  }

  static std::string Names(const char* what, const std::vector<std::string>& names) {
    std::string out = what;
    out += ": [";
    for (size_t i = 0; i < names.size(); ++i) out += (i ? " " : "") + names[i];
    return out + "]";
  }

  void FillConditions() {
    bool ended = out_.phase() == "Succeeded" || out_.phase() == "Failed";
    bool succeeded = out_.phase() == "Succeeded";
    const cri::SandboxStatus* sandbox = in_.runtime.ReadySandbox();
    bool sandbox_ready = sandbox && (spec_.host_network() || !sandbox->ips.empty());
    Set(k8s::kPodReadyToStartContainers, sandbox_ready && !in_.terminal);
    FillInitialized(succeeded);
    bool containers_ready = FillContainersReady(ended, succeeded);
    FillPodReady(containers_ready, ended, succeeded);
    Set(k8s::kPodScheduled, true);
    if (RestartsAll(spec_)) Set("AllContainersRestarting", in_.restarting_all);
  }

  void FillInitialized(bool succeeded) {
    if (in_.initialized) return Set(k8s::kPodInitialized, true, succeeded ? "PodCompleted" : "");
    std::vector<std::string> incomplete;
    for (int i = 0; i < spec_.init_containers_size(); ++i) {
      const auto& status = out_.init_container_statuses(i);
      bool done = k8s::IsSidecar(spec_.init_containers(i)) ? status.started() : status.ready();
      if (!done) incomplete.push_back(status.name());
    }
    if (incomplete.empty()) return Set(k8s::kPodInitialized, true, succeeded ? "PodCompleted" : "");
    Set(k8s::kPodInitialized, false, "ContainersNotInitialized",
        Names("containers with incomplete status", incomplete));
  }

  bool FillContainersReady(bool ended, bool succeeded) {
    if (ended) {
      Set(k8s::kContainersReady, false, succeeded ? "PodCompleted" : "PodFailed");
      return false;
    }
    std::vector<std::string> unready;
    for (int i = 0; i < spec_.init_containers_size(); ++i)
      if (k8s::IsSidecar(spec_.init_containers(i)) && !out_.init_container_statuses(i).ready())
        unready.push_back(spec_.init_containers(i).name());
    for (const auto& status : out_.container_statuses())
      if (!status.ready()) unready.push_back(status.name());
    if (unready.empty()) {
      Set(k8s::kContainersReady, true);
      return true;
    }
    Set(k8s::kContainersReady, false, "ContainersNotReady", Names("containers with unready status", unready));
    return false;
  }

  void FillPodReady(bool containers_ready, bool ended, bool succeeded) {
    if (ended) return Set(k8s::kPodReady, false, succeeded ? "PodCompleted" : "PodFailed");
    if (!containers_ready) {
      const auto* condition = k8s::FindCondition(out_, k8s::kContainersReady);
      return Set(k8s::kPodReady, false, condition->reason(), condition->message());
    }
    std::string missing;
    for (const auto& gate : spec_.readiness_gates()) {
      const auto* condition = k8s::FindCondition(out_, gate.condition_type());
      if (condition && condition->status() == "True") continue;
      if (!missing.empty()) missing += ", ";
      missing += condition ? "the status of pod readiness gate \"" + gate.condition_type() +
                                 "\" is not \"True\", but " + condition->status()
                           : "corresponding condition of pod readiness gate \"" + gate.condition_type() +
                                 "\" does not exist.";
    }
    if (missing.empty()) return Set(k8s::kPodReady, true);
    Set(k8s::kPodReady, false, "ReadinessGatesNotReady", missing);
  }

  const StatusInput& in_;
  const corev1::PodSpec& spec_;
  corev1::PodStatus out_;
};

}  // namespace

bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes) {
  return !container.has_startup_probe() || probes.Get(ProbeKind::kStartup, id).value_or(false);
}

bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes) {
  if (!ContainerStarted(container, id, probes)) return false;
  return !container.has_readiness_probe() || probes.Get(ProbeKind::kReadiness, id).value_or(false);
}

corev1::PodStatus GenerateStatus(const StatusInput& input) { return Generator(input).Generate(); }

corev1::PodStatus RejectedStatus(const corev1::Pod& pod, const std::string& reason,
                                 const std::string& message, WallTime now) {
  corev1::PodStatus out = pod.status();
  out.set_phase("Failed");
  out.set_reason(reason);
  out.set_message("Pod was rejected: " + message);
  out.set_qos_class(std::string(k8s::QosClass(pod)));
  if (!out.has_start_time()) *out.mutable_start_time() = api::ToTime(now);
  if (pod.metadata().generation()) out.set_observed_generation(pod.metadata().generation());
  return out;
}

void ApplyEnding(const PodEnding& ending, WallTime now, corev1::PodStatus& status) {
  status.set_phase("Failed");
  status.set_reason(ending.reason);
  status.set_message(ending.message);
  if (ending.disruption.empty()) return;
  corev1::PodCondition condition;
  condition.set_type(std::string(k8s::kDisruptionTarget));
  condition.set_status("True");
  condition.set_reason("TerminationByKubelet");
  condition.set_message(ending.disruption);
  if (status.observed_generation()) condition.set_observed_generation(status.observed_generation());
  k8s::SetCondition(status, std::move(condition), now);
}

}  // namespace keelson::kubelet
