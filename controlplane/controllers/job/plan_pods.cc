// Which pods a Job creates and deletes.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/active_pods.h"
#include "controlplane/controllers/common/pod_control.h"
#include "controlplane/controllers/job/plan.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr size_t kGeneratedNameBytes = 58;  // maximum length of generateName
constexpr char kIndexVariable[] = "JOB_COMPLETION_INDEX";

// Pods with a smaller rank are deleted first.
auto Worth(const corev1::Pod& pod) {
  const auto [restarts, of_sidecars] = MaxContainerRestarts(pod);
  return std::tuple(!pod.spec().node_name().empty(), PhaseRank(pod), k8s::IsReady(pod), -PodReadyTime(pod),
                    -restarts, -of_sidecars, -pod.metadata().creation_timestamp().seconds());
}

void SortByWorth(PodPointers& pods) {
  std::stable_sort(pods.begin(), pods.end(),
                   [](const PodPointer& a, const PodPointer& b) { return Worth(*a) < Worth(*b); });
}

// All pods except the best one of each index; includes pods without an index or out of range.
void SplitOffDuplicates(const JobLook& look, PodPointers& remove, PodPointers& left) {
  std::map<int32_t, PodPointers> by_index;
  for (const PodPointer& pod : look.active) {
    const std::optional<int32_t> index = CompletionIndex(*pod);
    if (index && *index < look.job.spec().completions()) {
      by_index[*index].push_back(pod);
    } else {
      remove.push_back(pod);
    }
  }
  for (auto& [index, pods] : by_index) {
    SortByWorth(pods);
    left.push_back(std::move(pods.back()));
    pods.pop_back();
    remove.insert(remove.end(), pods.begin(), pods.end());
  }
}

PodPointers PodsToRemove(const JobLook& look, size_t at_least) {
  PodPointers remove, left;
  if (IsIndexed(look.job)) {
    SplitOffDuplicates(look, remove, left);
  } else {
    left = look.active;
  }
  if (remove.size() < at_least) {
    SortByWorth(left);
    left.resize(std::min(left.size(), at_least - remove.size()));
    remove.insert(remove.end(), left.begin(), left.end());
  }
  return remove;
}

int32_t WantedActive(const JobLook& look) {
  const batchv1::JobSpec& spec = look.job.spec();
  // Without completions one success is enough: running pods continue, no new ones start.
  if (!spec.has_completions()) return look.succeeded > 0 ? look.active_count : spec.parallelism();
  return std::clamp(spec.completions() - look.succeeded, 0, spec.parallelism());
}

IndexRanges TakenIndexes(const JobLook& look) {
  std::set<int32_t> taken;
  const bool only_failed = ReplacesOnlyFailed(look.job);
  for (const PodPointer& pod : look.pods) {
    const bool going = k8s::IsTerminating(*pod) && !k8s::IsTerminal(*pod);
    if (!k8s::IsActive(*pod) && !(going && only_failed)) continue;
    if (std::optional<int32_t> index = CompletionIndex(*pod)) taken.insert(*index);
  }
  IndexRanges ranges = With(look.succeeded_indexes, taken);
  return look.failed_indexes ? Union(ranges, *look.failed_indexes) : ranges;
}

void PlanIndexes(const JobLook& look, PodPlan& plan) {
  plan.indexes = FirstFree(TakenIndexes(look), plan.create, look.job.spec().completions());
  if (look.failed_indexes) {
    std::erase_if(plan.indexes, [&](int32_t index) {
      const auto last = look.awaiting.find(index);
      if (last == look.awaiting.end()) return false;
      const IndexFailures before = FailuresBefore(*last->second);
      const auto left =
          BackoffLeft({before.counted + before.ignored + 1, FinishedAt(*last->second)}, look.now);
      if (left.count() == 0) return false;
      plan.wait = plan.wait ? std::min(*plan.wait, left) : left;
      return true;
    });
  }
  plan.create = plan.indexes.size();
}

void AddIndexVariable(corev1::Container& container) {
  for (const corev1::EnvVar& variable : container.env()) {
    if (variable.name() == kIndexVariable) return;
  }
  corev1::EnvVar& variable = *container.add_env();
  variable.set_name(kIndexVariable);
  variable.mutable_value_from()->mutable_field_ref()->set_field_path(
      fmt::format("metadata.labels['{}']", kCompletionIndex));
}

void Number(const JobLook& look, int32_t index, corev1::Pod& pod) {
  const std::string& name = look.job.metadata().name();
  metav1::ObjectMeta& meta = *pod.mutable_metadata();
  const std::string suffix = fmt::format("-{}-", index);
  meta.set_generate_name(name.substr(0, kGeneratedNameBytes - suffix.size()) + suffix);
  auto& annotations = *meta.mutable_annotations();
  annotations[kCompletionIndex] = std::to_string(index);
  (*meta.mutable_labels())[kCompletionIndex] = std::to_string(index);
  corev1::PodSpec& spec = *pod.mutable_spec();
  spec.set_hostname(fmt::format("{}-{}", name, index));
  for (corev1::Container& container : *spec.mutable_init_containers()) AddIndexVariable(container);
  for (corev1::Container& container : *spec.mutable_containers()) AddIndexVariable(container);
  if (!look.failed_indexes) return;
  const auto last = look.awaiting.find(index);
  const IndexFailures failures =
      last == look.awaiting.end() ? IndexFailures{} : FailuresWith(look.job, *last->second);
  annotations[kIndexFailures] = std::to_string(failures.counted);
  if (failures.ignored > 0) annotations[kIndexIgnoredFailures] = std::to_string(failures.ignored);
}

}  // namespace

PodPlan PlanPods(const JobLook& look) {
  PodPlan plan;
  if (IsSuspended(look.job)) {
    plan.remove = PodsToRemove(look, look.active.size());
    return plan;
  }
  const int32_t wanted = WantedActive(look);
  plan.remove = PodsToRemove(look, static_cast<size_t>(std::max(look.active_count - wanted, 0)));
  if (plan.remove.size() > kMaxPodsPerSync) plan.remove.resize(kMaxPodsPerSync);
  if (!plan.remove.empty()) return plan;
  const int32_t missing = wanted - look.active_count - (ReplacesOnlyFailed(look.job) ? look.terminating : 0);
  if (missing <= 0) return plan;
  if (!look.failed_indexes) {
    const auto left = BackoffLeft(look.backoff, look.now);
    if (left.count() > 0) {
      plan.wait = left;
      return plan;
    }
  }
  plan.create = std::min(static_cast<size_t>(missing), kMaxPodsPerSync);
  if (IsIndexed(look.job)) PlanIndexes(look, plan);
  return plan;
}

corev1::Pod NewJobPod(const JobLook& look, std::optional<int32_t> index) {
  corev1::Pod pod = PodFromTemplate(look.job.spec().template_(), look.job);
  if (!IsTracked(pod)) pod.mutable_metadata()->add_finalizers(kJobTracking);
  if (index) Number(look, *index, pod);
  return pod;
}

}  // namespace keelson::controllers
