#include "ctl/why/job/job_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ctl/output.h"
#include "ctl/why/denial.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

constexpr char kOwnController[] = "kubernetes.io/job-controller";
constexpr size_t kMostPods = 3;

std::string NameOf(const JobView& view) {
  return view.job.metadata().namespace_() + "/" + view.job.metadata().name();
}

std::string Kubectl(const JobView& view, const std::string& words) {
  return "kubectl -n " + view.job.metadata().namespace_() + " " + words;
}

const batchv1::JobCondition* Find(const batchv1::Job& job, const std::string& type) {
  for (const auto& condition : job.status().conditions()) {
    if (condition.type() == type && condition.status() == "True") return &condition;
  }
  return nullptr;
}

// "container main: Error, exit code 3"
std::string HowFailed(const corev1::Pod& pod) {
  for (const auto* statuses : {&pod.status().init_container_statuses(), &pod.status().container_statuses()}) {
    for (const auto& one : *statuses) {
      const auto& ended =
          one.state().has_terminated() ? one.state().terminated() : one.last_state().terminated();
      if (ended.exit_code() == 0) continue;
      return fmt::format("container {}: {}, exit code {}", one.name(), ended.reason(), ended.exit_code());
    }
  }
  return pod.status().reason().empty() ? pod.status().phase()
                                       : pod.status().reason() + ": " + pod.status().message();
}

// The last pods that have failed, and how to see what they said.
void AddFailedPods(const JobView& view, Problem& problem) {
  size_t told = 0;
  for (auto pod = view.pods.rbegin(); pod != view.pods.rend() && told < kMostPods; ++pod) {
    const bool restarts =
        std::any_of(pod->status().container_statuses().begin(), pod->status().container_statuses().end(),
                    [](const auto& one) { return one.restart_count() > 0; });
    if (pod->status().phase() != "Failed" && !restarts) continue;
    problem.evidence.push_back("pod " + pod->metadata().name() + ": " + HowFailed(*pod));
    if (++told > 1) continue;
    problem.next.push_back(Kubectl(view, "logs " + pod->metadata().name() + (restarts ? " --previous" : "")));
    problem.next.push_back("nodectl why pod " + pod->metadata().namespace_() + "/" + pod->metadata().name());
  }
  if (told == 0) problem.next.push_back(Kubectl(view, "describe job " + view.job.metadata().name()));
}

struct End {
  const char* condition;  // reason of the condition
  const char* sentence;
};
constexpr std::array<End, 6> kEnds{{
    {"BackoffLimitExceeded", "its pods have failed more often than backoffLimit allows"},
    {"DeadlineExceeded", "it has run for longer than activeDeadlineSeconds"},
    {"PodFailurePolicy", "a rule of its podFailurePolicy ends it"},
    {"FailedIndexes", "indexes have failed more often than backoffLimitPerIndex allows"},
    {"MaxFailedIndexesExceeded", "more indexes have failed than maxFailedIndexes allows"},
    {"", "it has failed"},
}};

void JudgeEnd(const JobView& view, std::vector<Problem>& out) {
  const batchv1::JobCondition* failed = Find(view.job, "Failed");
  if (!failed) failed = Find(view.job, "FailureTarget");
  if (!failed) return;
  const End* end = std::find_if(kEnds.begin(), kEnds.end() - 1,
                                [&](const End& one) { return failed->reason() == one.condition; });
  Problem problem{failed->reason().empty() ? "Failed" : failed->reason(),
                  std::string("the Job has failed: ") + end->sentence,
                  {fmt::format("{} is True, {}: {}", failed->type(), failed->reason(), failed->message()),
                   fmt::format("{} pods have failed, {} have succeeded", view.job.status().failed(),
                               view.job.status().succeeded())}};
  AddFailedPods(view, problem);
  out.push_back(std::move(problem));
}

void JudgePods(const JobView& view, std::vector<Problem>& out) {
  for (const corev1::Pod& pod : view.pods) {
    if (pod.status().phase() != "Pending") continue;
    const std::string name = pod.metadata().namespace_() + "/" + pod.metadata().name();
    const corev1::PodCondition* scheduled = k8s::FindCondition(pod.status(), k8s::kPodScheduled);
    Problem problem{
        "PodsPending", "pod " + pod.metadata().name() + " is Pending", {}, {"nodectl why pod " + name}};
    if (scheduled && scheduled->status() != "True") problem.evidence.push_back(scheduled->message());
    out.push_back(std::move(problem));
    return;
  }
  const bool restarts = std::any_of(view.pods.begin(), view.pods.end(), [](const corev1::Pod& pod) {
    return std::any_of(pod.status().container_statuses().begin(), pod.status().container_statuses().end(),
                       [](const auto& one) { return one.restart_count() > 0; });
  });
  if (view.job.status().failed() == 0 && !restarts) return;
  Problem problem{"PodsFailing",
                  fmt::format("its pods fail and are tried again: {} have failed, backoffLimit is {}",
                              view.job.status().failed(), view.job.spec().backoff_limit())};
  AddFailedPods(view, problem);
  out.push_back(std::move(problem));
}

void JudgeProgress(const JobView& view, std::vector<Problem>& out) {
  const batchv1::JobSpec& spec = view.job.spec();
  if (spec.suspend()) {
    out.push_back({"Suspended",
                   "the Job is suspended (spec.suspend)",
                   {},
                   {Kubectl(view, "patch job " + view.job.metadata().name() +
                                      " --type=merge -p '{\"spec\":{\"suspend\":false}}'")}});
    return;
  }
  if (!spec.managed_by().empty() && spec.managed_by() != kOwnController && view.pods.empty()) {
    out.push_back({"ManagedElsewhere",
                   "controller " + spec.managed_by() + " has to run the Job, and has made no pods",
                   {},
                   {Kubectl(view, "get job " + view.job.metadata().name() + " -o yaml")}});
    return;
  }
  const corev1::Event* last = LastOf(view.events, {"FailedCreate", "SuccessfulCreate"});
  if (last && last->reason() == "FailedCreate") {
    out.push_back(JudgeRefusal("Job " + NameOf(view) + " cannot create its pods",
                               view.job.metadata().namespace_(), last->message()));
  } else if (view.pods.empty() && !last && !view.job.status().has_start_time()) {
    out.push_back({"ControllerSilent",
                   "no controller has taken the Job up yet",
                   {},
                   {"kubectl -n kube-system get leases"}});
  }
  JudgePods(view, out);
}

void JudgeDeletion(const JobView& view, std::vector<Problem>& out) {
  const metav1::ObjectMeta& meta = view.job.metadata();
  if (!meta.has_deletion_timestamp()) return;
  for (const std::string& finalizer : meta.finalizers()) {
    out.push_back({"Finalizer",
                   "the Job is deleted when its finalizer " + finalizer + " is gone",
                   {},
                   {Kubectl(view, "get job " + meta.name() + " -o jsonpath='{.metadata.finalizers}'")}});
  }
}

}  // namespace

WhyReport JudgeJob(const JobView& view) {
  const batchv1::JobStatus& status = view.job.status();
  const bool complete = Find(view.job, "Complete"), failed = Find(view.job, "Failed");
  const char* state = complete                    ? "Complete"
                      : failed                    ? "Failed"
                      : view.job.spec().suspend() ? "Suspended"
                                                  : "Running";
  WhyReport report{fmt::format("Job {} is {}: {} active, {} succeeded, {} failed", NameOf(view), state,
                               status.active(), status.succeeded(), status.failed()),
                   {{"job", NameOf(view)},
                    {"state", state},
                    {"active", status.active()},
                    {"succeeded", status.succeeded()},
                    {"failed", status.failed()}},
                   {}};
  JudgeDeletion(view, report.problems);
  if (complete) return report;
  JudgeEnd(view, report.problems);
  if (!Find(view.job, "Failed") && !Find(view.job, "FailureTarget")) JudgeProgress(view, report.problems);
  return report;
}

}  // namespace keelson::ctl
