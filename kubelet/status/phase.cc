#include "kubelet/status/phase.h"

#include "kubelet/container/restart.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

class Judge {
 public:
  Judge(const StatusInput& in, const corev1::PodStatus& status)
      : in_(in), spec_(in.pod.spec()), out_(status) {}

  std::string Phase() const {
    bool pending_init = false, failed_init = false;
    for (int i = 0; i < spec_.init_containers_size(); ++i) {
      const auto& status = out_.init_container_statuses(i);
      if (k8s::IsSidecar(spec_.init_containers(i))) {
        if (!status.state().has_running() || !status.started()) pending_init = true;
      } else if (status.state().has_terminated()) {
        if (status.state().terminated().exit_code() == 0) continue;
        if (MayRestart(spec_, spec_.init_containers(i), status.state().terminated().exit_code())) {
          pending_init = true;
        } else {
          failed_init = true;
        }
      } else if (status.last_state().has_terminated() && status.state().has_waiting()) {
        if (status.last_state().terminated().exit_code() != 0) pending_init = true;
      } else {
        pending_init = true;
      }
    }
    Counts n = Count();
    if (in_.terminal) {
      return n.succeeded > 0 && n.succeeded == spec_.containers_size() ? "Succeeded" : "Failed";
    }
    if (failed_init && !in_.initialized) return "Failed";
    if (pending_init && !in_.initialized) return "Pending";
    if (n.waiting > 0) return "Pending";
    if (n.running > 0) return "Running";
    if (n.stopped == 0) return "Pending";
    if (n.restartable > 0) return "Running";
    return n.stopped == n.succeeded ? "Succeeded" : "Failed";
  }

 private:
  struct Counts {
    int waiting = 0, running = 0, stopped = 0, succeeded = 0, restartable = 0;
  };

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

  const StatusInput& in_;
  const corev1::PodSpec& spec_;
  const corev1::PodStatus& out_;
};

}  // namespace

std::string PhaseOf(const StatusInput& input, const corev1::PodStatus& status) {
  const std::string& old = input.pod.status().phase();
  if (old == "Failed" || old == "Succeeded") return old;  // an end is an end
  if (input.restarting_all && !input.terminal) {
    return old.empty() ? "Pending" : old;  // that all have been ended is no end
  }
  std::string phase = Judge(input, status).Phase();
  // No end before the last sidecar has ended.
  const bool goes_on = !input.terminal && (input.more_to_do || input.runtime.AnyRunning());
  if (goes_on && (phase == "Failed" || phase == "Succeeded")) return old.empty() ? "Pending" : old;
  return phase;
}

}  // namespace keelson::kubelet
