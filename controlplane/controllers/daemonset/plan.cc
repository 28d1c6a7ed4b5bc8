// Creations and deletions of a DaemonSet's pods.
#include "controlplane/controllers/daemonset/plan.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "controlplane/controllers/common/history.h"
#include "lib/api/codec/codec.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using PodPointer = PodPointers::value_type;

// Scheduled pods first, then the oldest.
void SortByAge(PodPointers& pods) {
  auto order = [](const corev1::Pod& pod) {
    const metav1::ObjectMeta& meta = pod.metadata();
    return std::tuple(pod.spec().node_name().empty(), meta.creation_timestamp().seconds(),
                      meta.creation_timestamp().nanos(), std::string_view(meta.name()));
  };
  std::sort(pods.begin(), pods.end(),
            [&](const PodPointer& a, const PodPointer& b) { return order(*a) < order(*b); });
}

bool Available(const appsv1::DaemonSet& set, const corev1::Pod& pod, WallTime now) {
  return k8s::IsAvailable(pod, set.spec().min_ready_seconds(), now);
}

int32_t Scaled(bool has, const intstr::IntOrString& value, int32_t total) {
  if (!has) return 0;
  Result<int64_t> number = k8s::ScaledValue(value, total, true);
  return number ? static_cast<int32_t>(*number) : 0;
}

int32_t SurgeOf(const appsv1::DaemonSet& set, int32_t desired) {
  if (set.spec().update_strategy().type() != "RollingUpdate") return 0;
  const auto& rolling = set.spec().update_strategy().rolling_update();
  return Scaled(rolling.has_max_surge(), rolling.max_surge(), desired);
}

// A node that may have pods. More than one is right only during a surge rollout.
class NodeRepair {
 public:
  NodeRepair(const appsv1::DaemonSet& set, const std::string& hash, WallTime now, DaemonRepairs& out)
      : set_(set), hash_(hash), now_(now), out_(out) {}

  void Run(const std::string& node, const PodPointers& pods, bool should_run,
           const std::function<bool(const corev1::Pod&)>& spare) {
    PodPointers running;
    for (const PodPointer& pod : pods) {
      if (k8s::IsTerminating(*pod)) continue;
      if (pod->status().phase() == "Failed") {
        if (spare(*pod)) continue;
        out_.failed.push_back(pod);
        out_.remove.push_back(pod);
      } else if (pod->status().phase() == "Succeeded") {
        out_.succeeded.push_back(pod);
        out_.remove.push_back(pod);
      } else {
        running.push_back(pod);
      }
    }
    SortByAge(running);
    const bool surges = SurgeOf(set_, 1) > 0;
    if (surges && running.empty() && should_run) out_.create.push_back(node);
    if (running.size() <= 1) return;
    if (surges) return KeepOldAndNew(running);
    out_.remove.insert(out_.remove.end(), running.begin() + 1, running.end());
  }

 private:
  void KeepOldAndNew(const PodPointers& running) {
    PodPointer newest, old;
    for (const PodPointer& pod : running) {
      auto label = pod->metadata().labels().find(kPodRevisionLabel);
      const bool is_new = label != pod->metadata().labels().end() && label->second == hash_;
      PodPointer& slot = is_new ? newest : old;
      if (slot) {
        out_.remove.push_back(pod);
      } else {
        slot = pod;
      }
    }
    if (newest && old && (!k8s::IsReady(*old) || Available(set_, *newest, now_))) out_.remove.push_back(old);
  }

  const appsv1::DaemonSet& set_;
  const std::string& hash_;
  const WallTime now_;
  DaemonRepairs& out_;
};

// The pods of a node for a rolling update.
struct Pair {
  PodPointer updated, old;
  bool ambiguous = false;  // more than one pod of a kind: PlanPods() handles it
};

Pair PairOf(const appsv1::DaemonSet& set, const PodPointers& pods, const std::string& hash) {
  Pair pair;
  for (const PodPointer& pod : pods) {
    if (k8s::IsTerminating(*pod)) continue;
    PodPointer& slot = IsUpToDate(set, *pod, hash) ? pair.updated : pair.old;
    if (slot) return {nullptr, nullptr, true};
    slot = pod;
  }
  return pair;
}

// Appends at most `most` of the candidates (none if negative).
template <typename T>
void Take(std::vector<T>& to, const std::vector<T>& candidates, int64_t most) {
  const int64_t count = std::clamp<int64_t>(most, 0, static_cast<int64_t>(candidates.size()));
  to.insert(to.end(), candidates.begin(), candidates.begin() + count);
}

// Deletes old pods, up to maxUnavailable; PlanPods() creates the new ones.
DaemonChanges ReplaceInPlace(const appsv1::DaemonSet& set, const PodsByNode& pods, const std::string& hash,
                             int32_t max_unavailable, WallTime now) {
  DaemonChanges changes;
  int32_t unavailable = 0;
  PodPointers candidates;
  for (const auto& [node, there] : pods) {
    const Pair pair = PairOf(set, there, hash);
    if (pair.ambiguous || !pair.updated == !pair.old) {
      ++unavailable;
    } else if (pair.updated) {
      if (!Available(set, *pair.updated, now)) ++unavailable;
    } else if (!Available(set, *pair.old, now)) {
      changes.remove.push_back(pair.old);  // this one now; the others wait until the new pod is available
      ++unavailable;
    } else {
      candidates.push_back(pair.old);
    }
  }
  Take(changes.remove, candidates, int64_t{max_unavailable} - unavailable);
  return changes;
}

// Creates new pods next to old ones, and deletes the old ones when the new ones are available.
DaemonChanges Surge(const appsv1::DaemonSet& set, const std::map<std::string, bool>& should_run,
                    const PodsByNode& pods, const std::string& hash, int32_t max_surge, int32_t desired,
                    WallTime now) {
  DaemonChanges changes;
  int32_t surge = 0, available = 0;
  std::vector<std::string> candidates;
  PodPointers misplaced;
  for (const auto& [node, there] : pods) {
    const Pair pair = PairOf(set, there, hash);
    if (pair.ambiguous) {
      ++surge;
      continue;
    }
    const PodPointer& serving = pair.old ? pair.old : pair.updated;
    const bool serves = serving && Available(set, *serving, now);
    if (serves) ++available;
    if (!pair.old) continue;
    if (!pair.updated) {
      auto runs = should_run.find(node);
      if (runs == should_run.end()) continue;  // the node is gone; pod garbage collection deletes its pods
      if (!runs->second) {
        misplaced.push_back(pair.old);
      } else {
        (serves ? candidates : changes.create).push_back(node);
      }
    } else if (!serves || Available(set, *pair.updated, now)) {
      changes.remove.push_back(pair.old);
    } else {
      ++surge;
    }
  }
  // Deletes a pod from a node that should not run one, once enough pods are available elsewhere.
  Take(changes.remove, misplaced, int64_t{available} - desired);
  Take(changes.create, candidates, int64_t{max_surge} - surge);
  return changes;
}

}  // namespace

DaemonLimits LimitsOf(const appsv1::DaemonSet& set, int32_t desired) {
  if (set.spec().update_strategy().type() != "RollingUpdate") return {};
  const auto& rolling = set.spec().update_strategy().rolling_update();
  DaemonLimits limits{SurgeOf(set, desired),
                      Scaled(rolling.has_max_unavailable(), rolling.max_unavailable(), desired)};
  if (desired > 0 && limits.surge == 0 && limits.unavailable == 0) limits.unavailable = 1;
  return limits;
}

DaemonRepairs PlanPods(const appsv1::DaemonSet& set, const NodePointers& nodes, const PodsByNode& pods,
                       const std::string& hash, WallTime now,
                       const std::function<bool(const corev1::Pod&)>& spare) {
  DaemonRepairs out;
  const DaemonPlacement placement(set);
  NodeRepair repair(set, hash, now, out);
  std::set<std::string_view> known;
  for (const auto& node : nodes) {
    const std::string& name = node->metadata().name();
    known.insert(name);
    const DaemonPlacement::Fit fit = placement.Of(*node);
    auto there = pods.find(name);
    if (there == pods.end()) {
      if (fit.should_run) out.create.push_back(name);
    } else if (fit.should_continue) {
      repair.Run(name, there->second, fit.should_run, spare);
    } else {
      for (const PodPointer& pod : there->second) {
        if (!k8s::IsTerminating(*pod)) out.remove.push_back(pod);
      }
    }
  }
  // Bound to a deleted node but not scheduled: nothing else deletes these pods.
  for (const auto& [node, there] : pods) {
    if (known.count(node)) continue;
    for (const PodPointer& pod : there) {
      if (pod->spec().node_name().empty()) out.remove.push_back(pod);
    }
  }
  return out;
}

DaemonChanges PlanRollout(const appsv1::DaemonSet& set, const NodePointers& nodes, PodsByNode pods,
                          const std::string& hash, WallTime now) {
  const DaemonPlacement placement(set);
  int32_t desired = 0;
  std::map<std::string, bool> should_run;
  for (const auto& node : nodes) {
    const bool runs = placement.Of(*node).should_run;
    should_run[node->metadata().name()] = runs;
    if (!runs) continue;
    ++desired;
    pods[node->metadata().name()];  // a node without pods counts too
  }
  const DaemonLimits limits = LimitsOf(set, desired);
  if (limits.surge == 0) return ReplaceInPlace(set, pods, hash, limits.unavailable, now);
  return Surge(set, should_run, pods, hash, limits.surge, desired, now);
}

appsv1::DaemonSetStatus StatusOf(const appsv1::DaemonSet& set, const NodePointers& nodes,
                                 const PodsByNode& pods, const std::string& hash, bool settled,
                                 WallTime now) {
  int32_t desired = 0, current = 0, misscheduled = 0, ready = 0, updated = 0, available = 0;
  const DaemonPlacement placement(set);
  for (const auto& node : nodes) {
    auto there = pods.find(node->metadata().name());
    const bool scheduled = there != pods.end();
    if (!placement.Of(*node).should_run) {
      misscheduled += scheduled;
      continue;
    }
    ++desired;
    if (!scheduled) continue;
    ++current;
    PodPointers sorted = there->second;
    SortByAge(sorted);
    const corev1::Pod& oldest = *sorted.front();
    ready += k8s::IsReady(oldest);
    available += Available(set, oldest, now);
    updated += IsUpToDate(set, oldest, hash);
  }
  appsv1::DaemonSetStatus status = set.status();
  status.set_desired_number_scheduled(desired);
  status.set_current_number_scheduled(current);
  status.set_number_misscheduled(misscheduled);
  status.set_number_ready(ready);
  status.set_updated_number_scheduled(updated);
  status.set_number_available(available);
  status.set_number_unavailable(desired - available);
  if (settled) status.set_observed_generation(set.metadata().generation());
  api::Normalize(status);
  return status;
}

}  // namespace keelson::controllers
