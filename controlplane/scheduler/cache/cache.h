// Nodes and the pods on them, as the API server has told, plus the pods that the scheduler has decided on and
// whose binding is under way ("assumed").
//
//   Assume -> assumed --(the API server shows the pod on its node)--> confirmed --> removed
//                \-- Forget (binding failed)
//
// It keeps who is where; what that amounts to for a node is worked out by the snapshot, from the changes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

class Cache {  // thread safe
 public:
  // Adds or replaces a node.
  void SetNode(std::shared_ptr<const NodeFacts> facts);
  void RemoveNode(std::string_view name);
  void SetNamespace(const std::string& name, std::shared_ptr<const api::LabelMap> labels);  // null: gone

  // The pod is on its node_name, says the API server. Confirms an assumed one, replaces a known one, which it
  // returns (null: new).
  PodPtr SetPod(PodPtr pod);
  // Returns what was known of it (null: nothing).
  PodPtr RemovePod(std::string_view key);

  // From now on counts as on `node`. False when a pod of that key is here already.
  bool Assume(PodPtr pod, std::string_view node);
  void Forget(std::string_view key);  // of an assumed pod; confirmed ones stay
  bool IsAssumed(std::string_view key) const;
  bool Holds(const PodInfo& pod) const;  // itself, not another of its key

  // Is to be on `node` once there is room; "" ends that. So does Assume, SetPod or RemovePod of its key.
  void Nominate(const PodPtr& pod, std::string_view node);
  std::string NominatedNode(std::string_view key) const;  // "" when there is none

  // Brings `snapshot` up to date; costs what has changed. Always the same snapshot.
  void Update(Snapshot& snapshot);
  size_t node_count() const;
  size_t pod_count() const;
  size_t assumed_count() const;

 private:
  struct Placed {
    PodPtr pod;
    uint32_t slot;
    bool assumed;
  };
  struct Slot {
    std::string name;
    bool exists = false;  // there is such a node, pods or not
    size_t users = 0;     // pods on it, and pods nominated for it
  };
  uint32_t SlotOf(std::string_view node) REQUIRES(mutex_);
  void Remove(std::unordered_map<std::string, Placed>::iterator it) REQUIRES(mutex_);
  void Unnominate(const std::string& key) REQUIRES(mutex_);
  void FreeIfUnused(uint32_t slot) REQUIRES(mutex_);
  void Log(Change change) REQUIRES(mutex_) { changes_.push_back(std::move(change)); }

  mutable Mutex mutex_;
  std::vector<Slot> nodes_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> slots_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, Placed> pods_ GUARDED_BY(mutex_);
  size_t assumed_ GUARDED_BY(mutex_) = 0;  // of them
  std::unordered_map<std::string, std::pair<PodPtr, uint32_t>> nominated_ GUARDED_BY(mutex_);
  std::vector<Change> changes_ GUARDED_BY(mutex_);  // since the last Update
};

}  // namespace keelson::scheduler
