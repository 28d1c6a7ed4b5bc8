// The pods that match the constraints of a SpreadSpec, by topology domain. Kept from one pod of the spec to the
// next, and updated by the snapshot's placements. Not thread safe: the scheduling thread owns it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"

namespace keelson::scheduler {

class SpreadCounts {
 public:
  // Counts for the spec's hard constraints (DoNotSchedule), or for its soft ones (ScheduleAnyway).
  SpreadCounts(std::shared_ptr<const SpreadSpec> spec, bool hard);

  // Brings the counts up to date with `snapshot`, always the same one, which outlives this.
  void Follow(const Snapshot& snapshot);
  // In a dry run: one pod more (by 1) or less (by -1) of `pod_class` on the node at `slot`.
  void UpdateWithPod(const PodClass& pod_class, uint32_t slot, int by);

  struct ConstraintCounts {
    const SpreadConstraint* constraint;
    const TopologyColumn* column = nullptr;
    bool by_slot;                    // a soft one of kubernetes.io/hostname: each node is a domain
    std::vector<int32_t> match_num;  // by domain: matching pods
    std::vector<int32_t> nodes;      // by domain: eligible nodes
    std::vector<bool> eligible;      // by slot: the node's pods count
    int32_t domains = 0;             // domains with eligible nodes
    int32_t min_match_num = 0;       // the smallest match_num of these
    std::vector<int32_t> domains_with_match_num;  // by match_num: how many of these have it

    // The domain of the node at `slot`; 0: it has none.
    uint32_t DomainOf(uint32_t slot) const { return by_slot ? slot + 1 : column->domain[slot]; }
    void Add(uint32_t domain, int32_t by);
  };
  const std::vector<ConstraintCounts>& constraints() const { return constraints_; }
  const SpreadSpec& spec() const { return *spec_; }
  // Whether the node has the topology keys of all constraints.
  bool HasAllKeys(uint32_t slot) const;

 private:
  void Rebuild(const Snapshot& snapshot);
  void CountNodes(const Snapshot& snapshot);
  uint32_t MatchingConstraints(const PodClass& pod_class);

  const std::shared_ptr<const SpreadSpec> spec_;
  std::vector<ConstraintCounts> constraints_;
  std::unordered_map<uint64_t, uint32_t> matching_;  // by class: bits of the constraints that it matches
  uint64_t places_epoch_ = 0, position_ = 0;
};

}  // namespace keelson::scheduler
