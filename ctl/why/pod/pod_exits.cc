#include <fmt/format.h>
#include <string.h>

#include "ctl/output.h"
#include "ctl/why/pod/pod_judge.h"
#include "lib/api/meta.h"
#include "lib/api/quantity.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

constexpr int kFirstSignal = 128;  // a shell's exit code of a program that a signal ended

// "with code 1", "by signal SIGKILL (code 137)"
std::string HowEnded(const corev1::ContainerStateTerminated& ended) {
  const int code = ended.exit_code(), signal = ended.signal() != 0 ? ended.signal() : code - kFirstSignal;
  const char* name = signal > 0 ? ::sigabbrev_np(signal) : nullptr;
  return name ? fmt::format("by signal SIG{} (code {})", name, code) : fmt::format("with code {}", code);
}

std::string Lived(const corev1::ContainerStateTerminated& ended) {
  if (!ended.has_started_at() || !ended.has_finished_at() || ended.started_at().seconds() == 0) return "";
  return " after " +
         ShortDuration(std::chrono::seconds(ended.finished_at().seconds() - ended.started_at().seconds()));
}

std::string MemoryLimit(const PodView& view, const std::string& container) {
  const corev1::Container* found = k8s::FindContainer(view.pod.spec(), container);
  if (!found) return "";
  const auto limit = found->resources().limits().find("memory");
  return limit == found->resources().limits().end() ? "" : api::Amount::Of(limit->second).ToString();
}

bool NeverRan(const corev1::ContainerStateTerminated& ended) {
  return ended.reason() == "StartError" || ended.reason() == "ContainerCannotRun";
}

// The probe that has ended the last instance: its failure, and the kubelet's decision.
const corev1::Event* FatalProbe(const PodView& view, const std::string& container, const std::string& probe) {
  if (!view.LastOfContainer(container, {"Killing"}, "failed " + probe + " probe")) return nullptr;
  std::string begin = probe + " probe failed";
  begin[0] = static_cast<char>(begin[0] - 'a' + 'A');
  return view.LastOfContainer(container, {"Unhealthy"}, begin);
}

Problem Cause(const PodView& view, const corev1::ContainerStatus& status, const std::string& what,
              const corev1::ContainerStateTerminated& ended) {
  const std::string& name = status.name();
  if (ended.reason() == "OOMKilled") {
    const std::string limit = MemoryLimit(view, name);
    return {"OOMKilled",
            what + (limit.empty() ? " is killed: the node is out of memory"
                                  : " is killed: it needs more memory than its limit of " + limit)};
  }
  if (NeverRan(ended)) return {"ContainerNotStarted", what + " does not start: " + ended.message()};
  for (const char* probe : {"liveness", "startup"}) {
    const corev1::Event* failed = FatalProbe(view, name, probe);
    if (!failed) continue;
    return {probe[0] == 'l' ? "LivenessProbeFailed" : "StartupProbeFailed",
            fmt::format("the kubelet kills {}: its {} probe fails", what, probe),
            {EventText(*failed)}};
  }
  if (ended.exit_code() == 0) {
    return {"Completed", what + " ends by itself, without an error, and restartPolicy " +
                             view.pod.spec().restart_policy() + " starts it again and again"};
  }
  const bool waits = status.state().has_waiting() && status.state().waiting().reason() == "CrashLoopBackOff";
  return {waits ? "CrashLoopBackOff" : "ContainerFailed",
          what + (waits ? " ends again and again, the last time " : " has ended ") + HowEnded(ended)};
}

}  // namespace

Problem JudgeExit(const PodView& view, const corev1::ContainerStatus& status, const std::string& what,
                  const corev1::ContainerStateTerminated& ended) {
  Problem out = Cause(view, status, what, ended);
  if (status.state().has_waiting()) {
    const corev1::ContainerStateWaiting& waiting = status.state().waiting();
    out.evidence.push_back(waiting.reason() + (waiting.message().empty() ? "" : ": " + waiting.message()));
  }
  out.evidence.push_back(fmt::format(
      "last end: {} {}{}, at {}; {} restart(s)", ended.reason().empty() ? "Ended" : ended.reason(),
      HowEnded(ended), Lived(ended), api::FormatTime(ended.finished_at()), status.restart_count()));
  if (!ended.message().empty() && !NeverRan(ended)) out.evidence.push_back("message: " + ended.message());
  if (const auto log = view.logs.find(status.name()); log != view.logs.end()) {
    for (const std::string& line : log->second) out.evidence.push_back("log: " + line);
  }
  const std::string& pod = view.pod.metadata().name();
  if (!NeverRan(ended)) {
    out.next.push_back(view.Kubectl(fmt::format("logs {} -c {}{}", pod, status.name(),
                                                status.state().has_terminated() ? "" : " --previous")));
  }
  if (out.reason == "OOMKilled") {
    out.next.push_back(view.Kubectl(fmt::format("top pod {} --containers", pod)));
  } else if (out.reason != "CrashLoopBackOff" && out.reason != "ContainerFailed") {
    out.next.push_back(view.Kubectl("describe pod " + pod));
  }
  return out;
}

}  // namespace keelson::ctl
