#include "controlplane/controllers/replicaset/plan.h"

#include <algorithm>

#include "controlplane/controllers/common/availability.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

bool HasLabels(const corev1::Pod& pod, const google::protobuf::Map<std::string, std::string>& wanted) {
  const auto& labels = pod.metadata().labels();
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& pair) {
    auto it = labels.find(pair.first);
    return it != labels.end() && it->second == pair.second;
  });
}

void SetFailure(appsv1::ReplicaSetStatus& status, const std::string* failure, int64_t diff, WallTime now) {
  auto& conditions = *status.mutable_conditions();
  auto it = std::find_if(conditions.begin(), conditions.end(),
                         [](const auto& condition) { return condition.type() == "ReplicaFailure"; });
  if (!failure) {
    if (it != conditions.end()) conditions.erase(it);
    return;
  }
  if (it != conditions.end()) return;  // the first failure stays until a sync succeeds
  auto& condition = *conditions.Add();
  condition.set_type("ReplicaFailure");
  condition.set_status("True");
  *condition.mutable_last_transition_time() = api::ToTime(now);
  condition.set_reason(diff < 0 ? "FailedCreate" : "FailedDelete");
  condition.set_message(*failure);
}

}  // namespace

ReplicaCounts CountReplicas(const appsv1::ReplicaSet& set, const PodPointers& active, int terminating,
                            WallTime now) {
  ReplicaCounts counts;
  counts.replicas = static_cast<int32_t>(active.size());
  counts.terminating = terminating;
  const int32_t min_ready = set.spec().min_ready_seconds();
  for (const auto& pod : active) {
    if (HasLabels(*pod, set.spec().template_().metadata().labels())) ++counts.fully_labeled;
    if (!k8s::IsReady(*pod)) continue;
    ++counts.ready;
    if (k8s::IsAvailable(*pod, min_ready, now)) ++counts.available;
    Earliest(counts.next_available, UntilAvailable(*pod, min_ready, now));
  }
  return counts;
}

appsv1::ReplicaSetStatus NewStatus(const appsv1::ReplicaSet& set, const ReplicaCounts& counts,
                                   const std::string* failure, int64_t diff, WallTime now) {
  appsv1::ReplicaSetStatus status = set.status();
  auto put = [](int32_t value, auto set_field, auto clear_field) {
    if (value != 0) {
      set_field(value);
    } else {
      clear_field();
    }
  };
  put(
      counts.replicas, [&](int32_t v) { status.set_replicas(v); }, [&] { status.clear_replicas(); });
  put(
      counts.fully_labeled, [&](int32_t v) { status.set_fully_labeled_replicas(v); },
      [&] { status.clear_fully_labeled_replicas(); });
  put(
      counts.ready, [&](int32_t v) { status.set_ready_replicas(v); }, [&] { status.clear_ready_replicas(); });
  put(
      counts.available, [&](int32_t v) { status.set_available_replicas(v); },
      [&] { status.clear_available_replicas(); });
  status.set_terminating_replicas(counts.terminating);
  status.set_observed_generation(std::max(status.observed_generation(), set.metadata().generation()));
  SetFailure(status, failure, diff, now);
  return status;
}

}  // namespace keelson::controllers
