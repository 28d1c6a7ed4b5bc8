// How many pods that a spread constraint means are in each domain. Kept from one pod to the next of the same
// SpreadSpec; follows the snapshot by its placements. Of the scheduling thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"

namespace keelson::scheduler {

class SpreadCounts {
 public:
  // Of the spec's hard constraints, or of its soft ones.
  SpreadCounts(std::shared_ptr<const SpreadSpec> spec, bool hard);

  void Follow(const Snapshot& snapshot);
  // One pod more or less, in a trial.
  void Move(const PodClass& pod_class, uint32_t slot, int by);

  struct Of {
    const SpreadConstraint* constraint;
    const TopologyColumn* column = nullptr;
    bool by_slot;                       // a soft one of kubernetes.io/hostname: a domain is one node
    std::vector<int32_t> pods;          // by domain
    std::vector<int32_t> nodes;         // by domain: nodes whose pods count
    std::vector<bool> eligible;         // by slot
    int32_t domains = 0;                // those with nodes
    int32_t fewest = 0;                 // pods in any of them
    std::vector<int32_t> domains_with;  // by number of pods

    uint32_t DomainOf(uint32_t slot) const { return by_slot ? slot + 1 : column->domain[slot]; }
    void Add(uint32_t domain, int32_t by);
  };
  const std::vector<Of>& constraints() const { return constraints_; }
  const SpreadSpec& spec() const { return *spec_; }
  // Whether the node has all labels that count.
  bool HasAllKeys(uint32_t slot) const;

 private:
  void Rebuild(const Snapshot& snapshot);
  void CountNodes(const Snapshot& snapshot);
  uint32_t Meant(const PodClass& pod_class);

  const std::shared_ptr<const SpreadSpec> spec_;
  std::vector<Of> constraints_;
  std::unordered_map<uint64_t, uint32_t> meant_;  // by class: bits of the constraints that mean it
  uint64_t places_epoch_ = 0, position_ = 0;
};

}  // namespace keelson::scheduler
