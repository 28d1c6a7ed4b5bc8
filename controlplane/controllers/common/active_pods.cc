#include "controlplane/controllers/common/active_pods.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr char kDeletionCost[] = "controller.kubernetes.io/pod-deletion-cost";

// Parses an int32 without '+' and leading zeros; an invalid value counts as 0.
int32_t DeletionCost(const corev1::Pod& pod) {
  auto it = pod.metadata().annotations().find(kDeletionCost);
  if (it == pod.metadata().annotations().end()) return 0;
  const std::string& text = it->second;
  int32_t cost = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), cost);
  return parsed.ec == std::errc() && std::to_string(cost) == text ? cost : 0;
}

// -1: `a` is newer by an order of magnitude (deleted first); 0: about the same age.
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

// Compares deletion order: negative if a goes first, positive if b does; never 0 for different pods.
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

}  // namespace

int PhaseRank(const corev1::Pod& pod) {
  const std::string& phase = pod.status().phase();
  return phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0;
}

std::pair<int32_t, int32_t> MaxContainerRestarts(const corev1::Pod& pod) {
  std::pair<int32_t, int32_t> restarts;
  for (const auto& status : pod.status().container_statuses()) {
    restarts.first = std::max(restarts.first, status.restart_count());
  }
  for (const auto& status : pod.status().init_container_statuses()) {
    const auto& containers = pod.spec().init_containers();
    const bool sidecar = std::any_of(containers.begin(), containers.end(), [&](const auto& container) {
      return container.name() == status.name() && container.restart_policy() == "Always";
    });
    if (sidecar) restarts.second = std::max(restarts.second, status.restart_count());
  }
  return restarts;
}

int64_t PodReadyTime(const corev1::Pod& pod) {
  const corev1::PodCondition* ready = k8s::FindCondition(pod.status(), k8s::kPodReady);
  return ready && ready->status() == "True" ? ready->last_transition_time().seconds() : 0;
}

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
                      it == on_node.end() ? 0 : it->second, DeletionCost(p), MaxContainerRestarts(p),
                      PodReadyTime(p), p.metadata().creation_timestamp().seconds()});
  }
  const int64_t seconds = api::ToTime(now).seconds();
  // Not std::sort: the age comparison by magnitude with its UID tie-break may not be a strict weak order, and
  // std::sort may then read out of bounds. std::stable_sort does not.
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

}  // namespace keelson::controllers
