// What the DefaultPreemption plugin needs from outside the scheduling cycle: PodDisruptionBudgets, extenders
// that choose victims, and somebody who carries preemption out.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"

namespace keelson::scheduler {

// A PodDisruptionBudget, as the decision needs it.
struct DisruptionBudget {
  std::string ns;
  api::LabelSelector selector;
  int32_t disruptions_allowed;
  std::vector<std::string> disrupted_pods;  // names, sorted: evicting one of them costs nothing more
};

// The pods that preemption would evict from a node.
struct Victims {
  std::vector<PodPtr> pods;  // most important first; empty: preemption does not help here, see `reason`
  std::string reason;
  // The order of candidates, least first. Fields are compared in this order.
  struct Cost {
    size_t num_pdb_violations = 0;
    int32_t highest_priority = 0;
    int64_t sum_priorities = 0;
    size_t num_pods = 0;
    // Start of the longest running victim of the highest priority, negated: later starts cost less.
    int64_t negated_earliest_start = 0;
    auto operator<=>(const Cost&) const = default;
  } cost;
};

// By slot of the node.
using NodeToVictims = std::map<uint32_t, Victims>;

class PreemptionExecutor {
 public:
  virtual ~PreemptionExecutor() = default;
  // All PodDisruptionBudgets as of now; another pointer when they have changed. Scheduling thread only.
  virtual std::shared_ptr<const std::vector<DisruptionBudget>> DisruptionBudgets() = 0;
  // Evicts `victims` from `node` in the background to make room for `pod`, and clears the nominated node of
  // `lower_priority_nominated_pods`. Scheduling thread only; does not block.
  virtual void PrepareCandidateAsync(const PodPtr& pod, const std::string& node, std::vector<PodPtr> victims,
                                     std::vector<PodPtr> lower_priority_nominated_pods) = 0;
  // Whether an extender takes part in the choice of victims for the pod. Scheduling thread only.
  virtual bool ExtendersSupportPreemption(const PodInfo& pod) const {
    (void)pod;
    return false;
  }
  // Reduces `victims` to the candidates that the extenders accept. An error ends the attempt. Scheduling
  // thread only; blocks.
  virtual Result<> CallExtenders(const PodInfo& pod, const Snapshot& snapshot, NodeToVictims& victims) {
    (void)pod, (void)snapshot, (void)victims;
    return {};
  }
  // Whether victims are being evicted for the pod, so that another attempt is too early. Thread safe.
  virtual bool IsPodRunningPreemption(const PodInfo& pod) const = 0;
};

}  // namespace keelson::scheduler
