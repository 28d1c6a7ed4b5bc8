#include "kubelet/status/container_statuses.h"

#include "kubelet/container/container_config.h"
#include "kubelet/container/restart.h"
#include "kubelet/status/readiness.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

using cri::ContainerState;
using Statuses = google::protobuf::RepeatedPtrField<corev1::ContainerStatus>;

metav1::Time TimeOfNanos(int64_t nanos) {
  return api::ToTime(
      WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos))));
}

class Filler {
 public:
  Filler(const StatusInput& in, corev1::PodStatus& out) : in_(in), spec_(in.pod.spec()), out_(out) {}

  void Run() {
    out_.clear_init_container_statuses();
    out_.clear_container_statuses();
    out_.clear_ephemeral_container_statuses();
    for (const auto& container : spec_.init_containers()) {
      Fill(container, true, *out_.add_init_container_statuses());
    }
    for (const auto& container : spec_.containers()) Fill(container, false, *out_.add_container_statuses());
    for (const auto& container : spec_.ephemeral_containers()) {
      Fill(FromEphemeral(container), false, *out_.add_ephemeral_container_statuses());
    }
    CutMessages();
  }

 private:
  std::string ContainerId(const std::string& id) const { return in_.runtime_name + "://" + id; }

  const corev1::ContainerStatus* Old(const std::string& name) const {
    return k8s::FindContainerStatus(in_.pod.status(), name);
  }

  void FillTerminated(const ContainerRecord& record, corev1::ContainerStateTerminated& out) const {
    out.set_exit_code(record.exit_code);
    out.set_reason(EndReason(record));
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
      if (const ContainerRecord* previous = in_.runtime.Previous(container.name())) {
        if (previous->state == ContainerState::kExited) {
          FillTerminated(*previous, *out.mutable_last_state()->mutable_terminated());
        }
      }
      // A run has ended and the next one is held up: the end moves into lastState. The last run's end stays.
      const bool over =
          record->state == ContainerState::kExited && !MayRestart(spec_, container, record->exit_code);
      if (waiting != in_.waiting.end() && record->state != ContainerState::kRunning && !in_.terminal &&
          !over) {
        if (out.state().has_terminated()) *out.mutable_last_state() = out.state();
        out.clear_state();
        out.mutable_state()->mutable_waiting()->set_reason(waiting->second.reason);
        if (!waiting->second.message.empty()) {
          out.mutable_state()->mutable_waiting()->set_message(waiting->second.message);
        }
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
    for (const auto& mount : container.volume_mounts()) {
      FillMount(mount, Old(container.name()), *out.add_volume_mounts());
    }
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
    if (image != in_.image_volumes->end()) {
      out.mutable_volume_status()->mutable_image()->set_image_ref(image->second);
    } else if (old) {  // found out by a kubelet before this one
      for (const auto& known : old->volume_mounts()) {
        if (known.mount_path() == mount.mount_path() && known.has_volume_status()) {
          *out.mutable_volume_status() = known.volume_status();
        }
      }
    }
  }

  // Messages of all containers together stay below 12 KiB.
  void CutMessages() {
    constexpr size_t kAll = 12 << 10;
    const int containers =
        spec_.init_containers_size() + spec_.containers_size() + spec_.ephemeral_containers_size();
    const size_t share = containers > 0 ? kAll / static_cast<size_t>(containers) : kAll;
    auto cut = [share](Statuses* statuses) {
      for (auto& status : *statuses) {
        for (auto* state : {status.mutable_state(), status.mutable_last_state()}) {
          if (state->has_terminated() && state->terminated().message().size() > share) {
            state->mutable_terminated()->mutable_message()->resize(share);
          }
        }
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
    if (ended) {
      *out.mutable_last_state() = old->state();
    } else if (old && old->last_state().has_terminated()) {
      *out.mutable_last_state() = old->last_state();
    }
    auto& state = *out.mutable_state()->mutable_waiting();
    state.set_reason(waiting != in_.waiting.end() ? waiting->second.reason : DefaultWaiting(init));
    if (waiting != in_.waiting.end() && !waiting->second.message.empty()) {
      state.set_message(waiting->second.message);
    }
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
    if (in_.stop_signals && !record.stop_signal.empty()) out.set_stop_signal(record.stop_signal);
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

  const StatusInput& in_;
  const corev1::PodSpec& spec_;
  corev1::PodStatus& out_;
};

}  // namespace

void FillContainerStatuses(const StatusInput& input, corev1::PodStatus& out) { Filler(input, out).Run(); }

}  // namespace keelson::kubelet
