// What preemption needs of the world: budgets, and evictions that are carried out elsewhere.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"

namespace keelson::scheduler {

struct Budget {
  std::string ns;
  api::LabelSelector selector;
  int32_t allowed;                     // disruptions
  std::vector<std::string> disrupted;  // pods whose eviction counts already, sorted
};

// Pods that would have to leave a node.
struct Victims {
  std::vector<PodPtr> pods;  // the most important first; empty: it does not help, see `reason`
  std::string reason;
  // How much they would be missed, what counts most first.
  struct Cost {
    size_t violations = 0;  // of budgets
    int32_t highest = 0;    // priority
    int64_t sum = 0;        // of priorities
    size_t count = 0;
    int64_t ran_since = 0;  // of the longest running of the highest, negated
    auto operator<=>(const Cost&) const = default;
  } cost;
};

using VictimsBySlot = std::map<uint32_t, Victims>;

class Evictor {
 public:
  virtual ~Evictor() = default;
  // Of the scheduling thread.
  virtual std::shared_ptr<const std::vector<Budget>> Budgets() = 0;
  // Evicts `victims` from `node` in the background, so that `pod` has room there; takes its promise from
  // `outranked`.
  virtual void Evict(const PodPtr& pod, const std::string& node, std::vector<PodPtr> victims,
                     std::vector<PodPtr> outranked) = 0;
  // Whether others have a say in whom to evict for the pod, and what they leave of the choice. Of the
  // scheduling thread.
  virtual bool Consults(const PodInfo& pod) const {
    (void)pod;
    return false;
  }
  virtual Result<> Consult(const PodInfo& pod, const Snapshot& snapshot, VictimsBySlot& victims) {
    (void)pod, (void)snapshot, (void)victims;
    return {};
  }
  // Evictions for the pod are under way: it need not be tried. Thread safe.
  virtual bool Busy(const PodInfo& pod) const = 0;
};

}  // namespace keelson::scheduler
