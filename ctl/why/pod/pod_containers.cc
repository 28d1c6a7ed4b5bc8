#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "ctl/why/pod/pod_judge.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

constexpr std::array<std::string_view, 7> kImageReasons = {
    "ErrImagePull",      "ImagePullBackOff",    "InvalidImageName",         "ErrImageNeverPull",
    "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"};

bool IsImageReason(const std::string& reason) {
  return std::find(kImageReasons.begin(), kImageReasons.end(), reason) != kImageReasons.end();
}

// What nothing has kept back, as far as the container itself tells.
bool IsNormalWait(const std::string& reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

void JudgeWaiting(const PodView& view, const corev1::ContainerStatus& status, const std::string& what,
                  std::vector<Problem>& out) {
  const corev1::ContainerStateWaiting& waiting = status.state().waiting();
  const std::string describe = view.Kubectl("describe pod " + view.pod.metadata().name());
  if (IsNormalWait(waiting.reason())) return;
  if (IsImageReason(waiting.reason())) return out.push_back(JudgeImage(view, status, what));
  if (auto missing = MissingReference(view, what, waiting.message())) return out.push_back(*missing);
  if (waiting.reason() == "CrashLoopBackOff" && status.last_state().has_terminated()) {
    return out.push_back(JudgeExit(view, status, what, status.last_state().terminated()));
  }
  if (waiting.message().find("runAsNonRoot") != std::string::npos) {
    return out.push_back({"RunAsNonRoot",
                          what + " may not run as root (runAsNonRoot), and its image would",
                          {waiting.reason() + ": " + waiting.message()},
                          {describe}});
  }
  const bool failed = waiting.reason() == "RunContainerError" || waiting.reason() == "CreateContainerError";
  out.push_back({failed ? "ContainerNotStarted" : waiting.reason(),
                 what + " does not start: " + waiting.message(),
                 {waiting.reason() + ": " + waiting.message()},
                 {describe}});
}

void JudgeUnready(const PodView& view, const corev1::ContainerStatus& status, const std::string& what,
                  std::vector<Problem>& out) {
  const bool starting = status.has_started() && !status.started();
  const corev1::Event* failed =
      view.LastOfContainer(status.name(), {"Unhealthy"}, starting ? "Startup probe" : "Readiness probe");
  const char* kind = starting ? "startup" : "readiness";
  Problem problem{
      starting ? "StartupProbeFailed" : "ReadinessProbeFailed",
      fmt::format("{} runs, but its {} probe {}", what, kind, failed ? "fails" : "has not succeeded yet")};
  if (failed) problem.evidence.push_back(EventText(*failed));
  if (status.last_state().has_terminated()) {
    const Problem before = JudgeExit(view, status, what, status.last_state().terminated());
    problem.evidence.insert(problem.evidence.end(), before.evidence.begin(), before.evidence.end());
  }
  problem.next.push_back(view.Kubectl("logs " + view.pod.metadata().name() + " -c " + status.name()));
  out.push_back(std::move(problem));
}

// True: the containers after this one have to wait for it.
bool JudgeInit(const PodView& view, const corev1::ContainerStatus& status, std::vector<Problem>& out) {
  const std::string what = "init container " + status.name();
  const auto& state = status.state();
  const corev1::Container* own = k8s::FindContainer(view.pod.spec(), status.name());
  const bool sidecar = own && k8s::IsSidecar(*own);
  if (state.has_terminated() && state.terminated().exit_code() == 0 && !sidecar) return false;
  if (state.has_terminated()) {
    out.push_back(JudgeExit(view, status, what, state.terminated()));
  } else if (state.has_waiting()) {
    JudgeWaiting(view, status, what, out);
  } else if (state.has_running() && sidecar) {
    if (status.started() && status.ready()) return false;
    JudgeUnready(view, status, what, out);
    return !status.started();
  } else if (state.has_running()) {
    out.push_back({"InitContainerRunning",
                   what + " has not ended yet; the containers wait for it",
                   {},
                   {view.Kubectl("logs " + view.pod.metadata().name() + " -c " + status.name())}});
  }
  return true;
}

}  // namespace

void JudgeContainers(const PodView& view, std::vector<Problem>& out) {
  const corev1::PodStatus& status = view.pod.status();
  for (const corev1::ContainerStatus& one : status.init_container_statuses()) {
    if (JudgeInit(view, one, out)) return;
  }
  for (const corev1::ContainerStatus& one : status.container_statuses()) {
    const std::string what = "container " + one.name();
    if (one.state().has_waiting()) {
      JudgeWaiting(view, one, what, out);
    } else if (one.state().has_terminated() && one.state().terminated().exit_code() != 0) {
      out.push_back(JudgeExit(view, one, what, one.state().terminated()));
    } else if (one.state().has_running() && !one.ready() && status.phase() == "Running") {
      JudgeUnready(view, one, what, out);
    }
  }
  const corev1::PodCondition* ready = k8s::FindCondition(status, k8s::kPodReady);
  if (out.empty() && ready && ready->status() != "True" && ready->reason() == "ReadinessGatesNotReady") {
    out.push_back(
        {"ReadinessGate",
         "the containers are ready, but a readiness gate of the pod is not",
         {ready->message()},
         {view.Kubectl("get pod " + view.pod.metadata().name() + " -o jsonpath='{.status.conditions}'")}});
  }
}

}  // namespace keelson::ctl
