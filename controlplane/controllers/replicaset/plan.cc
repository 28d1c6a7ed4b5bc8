#include "controlplane/controllers/replicaset/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "controlplane/controllers/common/availability.h"
#include "controlplane/controllers/common/pod_worth.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr char kDeletionCost[] = "controller.kubernetes.io/pod-deletion-cost";

// An int32 without sign but '-' and without leading zeros; anything else costs nothing.
int32_t DeletionCost(const corev1::Pod& pod) {
  auto it = pod.metadata().annotations().find(kDeletionCost);
  if (it == pod.metadata().annotations().end()) return 0;
  const std::string& text = it->second;
  int32_t cost = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), cost);
  return parsed.ec == std::errc() && std::to_string(cost) == text ? cost : 0;
}

// -1: `a` is younger by an order of magnitude (goes first); 0: about the same age.
int CompareAges(int64_t a, int64_t b, int64_t now) {
  auto magnitude = [&](int64_t t) { return now > t ? static_cast<int>(std::log2((now - t) * 1e9)) : -1; };
  if (a == b) return 0;
  if (a == 0 || b == 0) return a == 0 ? -1 : 1;
  int x = magnitude(a), y = magnitude(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

struct Ranked {
  std::shared_ptr<const corev1::Pod> pod;
  bool assigned, ready;
  int phase, neighbours;
  int32_t cost;
  std::pair<int32_t, int32_t> restarts;
  int64_t ready_since, created;
};

// Which of two goes first: negative for a, positive for b; never 0 for different pods.
int Order(const Ranked& a, const Ranked& b, int64_t now) {
  if (a.assigned != b.assigned) return a.assigned ? 1 : -1;
  if (a.phase != b.phase) return a.phase - b.phase;
  if (a.ready != b.ready) return a.ready ? 1 : -1;
  if (a.cost != b.cost) return a.cost < b.cost ? -1 : 1;
  if (a.neighbours != b.neighbours) return b.neighbours - a.neighbours;
  const int by_uid = a.pod->metadata().uid() < b.pod->metadata().uid() ? -1 : 1;
  if (a.ready && a.ready_since != b.ready_since) {
    int ages = CompareAges(a.ready_since, b.ready_since, now);
    return ages != 0 ? ages : by_uid;
  }
  if (a.restarts != b.restarts) return a.restarts > b.restarts ? -1 : 1;
  if (a.created != b.created) {
    int ages = CompareAges(a.created, b.created, now);
    return ages != 0 ? ages : by_uid;
  }
  return by_uid;
}

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
  if (it != conditions.end()) return;  // the first failure stays until all is well
  auto& condition = *conditions.Add();
  condition.set_type("ReplicaFailure");
  condition.set_status("True");
  *condition.mutable_last_transition_time() = api::ToTime(now);
  condition.set_reason(diff < 0 ? "FailedCreate" : "FailedDelete");
  condition.set_message(*failure);
}

}  // namespace

PodPointers PodsToDelete(PodPointers pods, const PodPointers& related, size_t count, WallTime now) {
  if (count >= pods.size()) return pods;
  std::map<std::string, int> on_node;
  for (const auto& pod : related) {
    if (k8s::IsActive(*pod)) ++on_node[pod->spec().node_name()];
  }
  std::vector<Ranked> ranked;
  for (auto& pod : pods) {
    const corev1::Pod& p = *pod;
    auto it = on_node.find(p.spec().node_name());
    ranked.push_back({pod, !p.spec().node_name().empty(), k8s::IsReady(p), PhaseRank(p),
                      it == on_node.end() ? 0 : it->second, DeletionCost(p), MaxRestarts(p), ReadySince(p),
                      p.metadata().creation_timestamp().seconds()});
  }
  const int64_t seconds = api::ToTime(now).seconds();
  // Not std::sort: ages compared by magnitude are no strict weak order across the uid tie-break in theory,
  // and std::sort may run out of bounds on such input. A stable merge cannot.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Ranked& a, const Ranked& b) { return Order(a, b, seconds) < 0; });
  PodPointers out;
  for (size_t i = 0; i < count; ++i) out.push_back(ranked[i].pod);
  return out;
}

std::vector<double> AgeRatios(const PodPointers& pods, const PodPointers& chosen, WallTime now) {
  auto age = [&](const corev1::Pod& pod) {
    return std::chrono::duration<double>(now - api::FromTime(pod.metadata().creation_timestamp())).count();
  };
  std::optional<double> youngest;
  for (const auto& pod : pods) {
    if (k8s::IsReady(*pod)) youngest = std::min(youngest.value_or(age(*pod)), age(*pod));
  }
  std::vector<double> out;
  for (const auto& pod : chosen) {
    if (k8s::IsReady(*pod) && *youngest > 0) out.push_back(age(*pod) / *youngest);
  }
  return out;
}

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

int SlowStart(int count, const std::function<int(int)>& create) {
  int made = 0;
  for (int batch = std::min(count, 1); batch > 0; batch = std::min(2 * batch, count - made)) {
    int successes = create(batch);
    made += successes;
    if (successes < batch) break;
  }
  return made;
}

}  // namespace keelson::controllers
