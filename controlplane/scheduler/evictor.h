// What preemption needs of the world: budgets, and evictions that are carried out elsewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/framework.h"

namespace keelson::scheduler {

struct Budget {
  std::string ns;
  api::LabelSelector selector;
  int32_t allowed;                     // disruptions
  std::vector<std::string> disrupted;  // pods whose eviction counts already, sorted
};

class Evictor {
 public:
  virtual ~Evictor() = default;
  // Of the scheduling thread.
  virtual std::shared_ptr<const std::vector<Budget>> Budgets() = 0;
  // Evicts `victims` from `node` in the background, so that `pod` has room there; takes its promise from
  // `outranked`.
  virtual void Evict(const PodPtr& pod, const std::string& node, std::vector<PodPtr> victims,
                     std::vector<PodPtr> outranked) = 0;
  // Evictions for the pod are under way: it need not be tried. Thread safe.
  virtual bool Busy(const PodInfo& pod) const = 0;
};

}  // namespace keelson::scheduler
