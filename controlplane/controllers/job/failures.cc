#include "controlplane/controllers/job/failures.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr std::chrono::seconds kFirstBackoff{10};
constexpr std::chrono::minutes kLongestBackoff{10};
constexpr char kOwnName[] = "kubernetes.io/job-controller";

std::optional<int32_t> NumberAt(const corev1::Pod& pod, const char* annotation) {
  const auto it = pod.metadata().annotations().find(annotation);
  if (it == pod.metadata().annotations().end()) return std::nullopt;
  const std::string& text = it->second;
  int32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

using ExitCodes = batchv1::PodFailurePolicyOnExitCodesRequirement;

const corev1::ContainerStatus* FindExit(
    const google::protobuf::RepeatedPtrField<corev1::ContainerStatus>& statuses, const ExitCodes& wanted) {
  for (const corev1::ContainerStatus& status : statuses) {
    if (!status.state().has_terminated()) continue;
    const int32_t code = status.state().terminated().exit_code();
    if (code == 0 || (wanted.has_container_name() && wanted.container_name() != status.name())) continue;
    const bool listed =
        std::find(wanted.values().begin(), wanted.values().end(), code) != wanted.values().end();
    if (listed == (wanted.operator_() == "In")) return &status;
  }
  return nullptr;
}

const corev1::PodCondition* FindPattern(const corev1::Pod& pod, const batchv1::PodFailurePolicyRule& rule) {
  for (const corev1::PodCondition& condition : pod.status().conditions()) {
    for (const auto& pattern : rule.on_pod_conditions()) {
      if (pattern.type() == condition.type() && pattern.status() == condition.status()) return &condition;
    }
  }
  return nullptr;
}

// Why the rule matches, as text; nullopt: it does not match.
std::optional<std::string> Match(const corev1::Pod& pod, const batchv1::PodFailurePolicyRule& rule,
                                 int index) {
  const std::string &ns = pod.metadata().namespace_(), &name = pod.metadata().name();
  if (rule.has_on_exit_codes()) {
    const corev1::ContainerStatus* exit = FindExit(pod.status().container_statuses(), rule.on_exit_codes());
    if (!exit) exit = FindExit(pod.status().init_container_statuses(), rule.on_exit_codes());
    if (!exit) return std::nullopt;
    return fmt::format("Container {} for pod {}/{} failed with exit code {} matching {} rule at index {}",
                       exit->name(), ns, name, exit->state().terminated().exit_code(), rule.action(), index);
  }
  const corev1::PodCondition* condition = FindPattern(pod, rule);
  if (!condition) return std::nullopt;
  return fmt::format("Pod {}/{} has condition {} matching {} rule at index {}", ns, name, condition->type(),
                     rule.action(), index);
}

}  // namespace

bool IsIndexed(const batchv1::Job& job) { return job.spec().completion_mode() == "Indexed"; }
bool IsSuspended(const batchv1::Job& job) { return job.spec().suspend(); }

bool HasCondition(const batchv1::Job& job, std::string_view type) {
  const auto& conditions = job.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [&](const batchv1::JobCondition& condition) {
    return condition.type() == type && condition.status() == "True";
  });
}

bool IsFinished(const batchv1::Job& job) {
  return HasCondition(job, "Complete") || HasCondition(job, "Failed");
}

bool IsManagedElsewhere(const batchv1::Job& job) {
  return job.spec().has_managed_by() && job.spec().managed_by() != kOwnName;
}

bool IsTracked(const corev1::Pod& pod) {
  const auto& finalizers = pod.metadata().finalizers();
  return std::find(finalizers.begin(), finalizers.end(), kJobTracking) != finalizers.end();
}

std::optional<int32_t> CompletionIndex(const corev1::Pod& pod) { return NumberAt(pod, kCompletionIndex); }

bool ReplacesOnlyFailed(const batchv1::Job& job) {
  return job.spec().pod_replacement_policy() == "Failed" || job.spec().has_pod_failure_policy();
}

bool HasFailed(const corev1::Pod& pod, const batchv1::Job& job) {
  if (pod.status().phase() == "Failed") return true;
  if (ReplacesOnlyFailed(job)) return false;
  // A terminating pod may never reach phase Failed: its kubelet may be gone.
  return k8s::IsTerminating(pod) && pod.status().phase() != "Succeeded";
}

WallTime FinishedAt(const corev1::Pod& pod) {
  int64_t latest = 0;
  bool all = !pod.status().container_statuses().empty();
  const auto look = [&](const corev1::ContainerStatus& status) {
    const int64_t at = status.state().terminated().finished_at().seconds();
    all = all && at > 0;
    latest = std::max(latest, at);
  };
  for (const corev1::ContainerStatus& status : pod.status().container_statuses()) look(status);
  // Sidecars end after all other containers.
  std::set<std::string_view> sidecars;
  for (const corev1::Container& container : pod.spec().init_containers()) {
    if (k8s::IsSidecar(container)) sidecars.insert(container.name());
  }
  for (const corev1::ContainerStatus& status : pod.status().init_container_statuses()) {
    if (sidecars.count(status.name())) look(status);
  }
  if (all) return WallTimeOf(latest);
  const corev1::PodCondition* ready = k8s::FindCondition(pod.status(), k8s::kPodReady);
  if (ready && ready->status() == "False" && ready->has_last_transition_time()) {
    return api::FromTime(ready->last_transition_time());
  }
  const metav1::ObjectMeta& meta = pod.metadata();
  if (meta.has_deletion_timestamp()) {
    return api::FromTime(meta.deletion_timestamp()) - Span(meta.deletion_grace_period_seconds());
  }
  return api::FromTime(meta.creation_timestamp());
}

FailureVerdict JudgeFailure(const batchv1::Job& job, const corev1::Pod& pod) {
  const auto& rules = job.spec().pod_failure_policy().rules();
  for (int i = 0; i < rules.size(); ++i) {
    std::optional<std::string> why = Match(pod, rules[i], i);
    if (!why) continue;
    const std::string& action = rules[i].action();
    return {action, action == "FailJob" ? *std::move(why) : "", action != "Ignore"};
  }
  return {};
}

IndexFailures FailuresBefore(const corev1::Pod& pod) {
  return {NumberAt(pod, kIndexFailures).value_or(0), NumberAt(pod, kIndexIgnoredFailures).value_or(0)};
}

IndexFailures FailuresWith(const batchv1::Job& job, const corev1::Pod& pod) {
  IndexFailures failures = FailuresBefore(pod);
  ++(JudgeFailure(job, pod).counts ? failures.counted : failures.ignored);
  return failures;
}

bool FailsIndex(const batchv1::Job& job, const corev1::Pod& pod) {
  if (!HasFailed(pod, job)) return false;
  const FailureVerdict verdict = JudgeFailure(job, pod);
  if (verdict.action == "FailIndex") return true;
  return verdict.counts && FailuresBefore(pod).counted >= job.spec().backoff_limit_per_index();
}

Backoff NextBackoff(Backoff before, const PodPointers& succeeded, const PodPointers& failed) {
  if (!succeeded.empty()) before = {};
  WallTime success = WallTime::min();
  for (const PodPointer& pod : succeeded) success = std::max(success, FinishedAt(*pod));
  for (const PodPointer& pod : failed) {
    const WallTime at = FinishedAt(*pod);
    if (at <= success) continue;
    before.last = before.failures == 0 ? at : std::max(before.last, at);
    ++before.failures;
  }
  return before;
}

std::chrono::nanoseconds BackoffLeft(const Backoff& backoff, WallTime now) {
  if (backoff.failures == 0) return {};
  std::chrono::nanoseconds wait = kFirstBackoff;
  for (int i = 1; i < backoff.failures && wait < kLongestBackoff; ++i) wait *= 2;
  wait = std::min<std::chrono::nanoseconds>(wait, kLongestBackoff);
  return std::max<std::chrono::nanoseconds>(backoff.last + wait - now, std::chrono::nanoseconds(0));
}

}  // namespace keelson::controllers
