// Nodes and the pods on them, as the API server has told, plus the pods that the scheduler has decided on and
// whose binding is under way ("assumed").
//
//   Assume -> assumed --(the API server shows the pod on its node)--> confirmed --> removed
//                \-- Forget (binding failed)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/node_info.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

// Nodes at one moment, for the scheduling thread. A node keeps its slot while it exists; slots of nodes that
// have gone have no facts.
struct Snapshot {
  std::vector<NodeInfo> nodes;
  std::unordered_map<std::string, size_t> slots;  // by name, of nodes with facts
  size_t count() const { return slots.size(); }
};

class Cache {  // thread safe
 public:
  // Adds or replaces a node; returns its former facts (null: it is new).
  std::shared_ptr<const NodeFacts> SetNode(std::shared_ptr<const NodeFacts> facts);
  void RemoveNode(std::string_view name);

  // The pod is on its node_name, says the API server. Confirms an assumed one, replaces a known one.
  void SetPod(PodPtr pod);
  // Returns what was known of it (null: nothing).
  PodPtr RemovePod(std::string_view key);

  // From now on counts as on `node`. False when a pod of that key is here already.
  bool Assume(PodPtr pod, std::string_view node);
  void Forget(std::string_view key);  // of an assumed pod; confirmed ones stay
  bool IsAssumed(std::string_view key) const;

  // Brings `snapshot` up to date; costs what has changed.
  void Update(Snapshot& snapshot);
  size_t node_count() const;
  size_t pod_count() const;

 private:
  struct Placed {
    PodPtr pod;
    size_t slot;
    bool assumed;
  };
  size_t SlotOf(std::string_view node) REQUIRES(mutex_);
  void Touch(size_t slot) REQUIRES(mutex_);
  void Remove(std::unordered_map<std::string, Placed>::iterator it) REQUIRES(mutex_);
  void FreeIfUnused(size_t slot) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<NodeInfo> nodes_ GUARDED_BY(mutex_);
  std::vector<std::string> slot_names_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, size_t> slots_ GUARDED_BY(mutex_);
  std::vector<size_t> free_slots_ GUARDED_BY(mutex_);
  std::vector<bool> dirty_ GUARDED_BY(mutex_);
  std::vector<size_t> dirty_slots_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, Placed> pods_ GUARDED_BY(mutex_);
  uint64_t generation_ GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::scheduler
