// Jobs and their pods for tests.
#pragma once

#include "controlplane/controllers/job/plan.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::controllers {

// A Job with defaults, and with the selector and labels that the API server adds.
inline batchv1::Job JobNamed(const std::string& name, int32_t completions, int32_t parallelism) {
  batchv1::Job job;
  job.mutable_metadata()->set_name(name);
  job.mutable_metadata()->set_namespace_("default");
  batchv1::JobSpec& spec = *job.mutable_spec();
  if (completions >= 0) spec.set_completions(completions);
  spec.set_parallelism(parallelism);
  *spec.mutable_template_()->mutable_spec() = PodNamed("x").spec();
  spec.mutable_template_()->mutable_spec()->set_restart_policy("Never");
  (*spec.mutable_template_()->mutable_metadata()->mutable_labels())["batch.kubernetes.io/job-name"] = name;
  (*spec.mutable_selector()->mutable_match_labels())["batch.kubernetes.io/job-name"] = name;
  k8s::SetDefaults(job);
  return job;
}

inline batchv1::Job IndexedJob(const std::string& name, int32_t completions, int32_t parallelism) {
  batchv1::Job job = JobNamed(name, completions, parallelism);
  job.mutable_spec()->set_completion_mode("Indexed");
  return job;
}

inline batchv1::Job PerIndexJob(const std::string& name, int32_t completions, int32_t parallelism,
                                int32_t limit) {
  batchv1::Job job = IndexedJob(name, completions, parallelism);
  job.mutable_spec()->set_backoff_limit_per_index(limit);
  job.mutable_spec()->set_backoff_limit(std::numeric_limits<int32_t>::max());
  return job;
}

inline const batchv1::JobCondition* ConditionOf(const batchv1::Job& job, std::string_view type) {
  for (const auto& condition : job.status().conditions()) {
    if (condition.type() == type) return &condition;
  }
  return nullptr;
}

// "Complete/CompletionsReached" for each condition with status True, in order.
inline std::vector<std::string> TrueConditions(const batchv1::Job& job) {
  std::vector<std::string> out;
  for (const auto& condition : job.status().conditions()) {
    if (condition.status() == "True") out.push_back(condition.type() + "/" + condition.reason());
  }
  return out;
}

// Ends the pod with an exit code of its container "main"; 0: Succeeded.
inline void EndPod(corev1::Pod& pod, int32_t exit_code, WallTime at) {
  corev1::PodStatus& status = *pod.mutable_status();
  status.set_phase(exit_code == 0 ? "Succeeded" : "Failed");
  status.clear_conditions();
  status.clear_container_statuses();
  corev1::ContainerStatus& container = *status.add_container_statuses();
  container.set_name("main");
  auto& ended = *container.mutable_state()->mutable_terminated();
  ended.set_exit_code(exit_code);
  *ended.mutable_finished_at() = api::ToTime(at);
}

}  // namespace keelson::controllers
