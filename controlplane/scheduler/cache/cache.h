// The scheduler cache: nodes and the pods on them as the API server has shown them, plus assumed pods: those
// that the scheduler has chosen a node for and whose binding is under way.
//
//   AssumePod -> assumed --(the API server shows the pod on its node)--> confirmed --> removed
//                   \-- ForgetPod (binding failed)
//
// The cache keeps which pod is on which node and a log of changes; the snapshot sums up requests, ports and
// topology from that log.
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
  // Removes a node. Its pods stay until they are removed themselves.
  void RemoveNode(std::string_view name);
  // Sets a namespace's labels; null: it is gone.
  void SetNamespace(const std::string& name, std::shared_ptr<const api::LabelMap> labels);

  // Adds or replaces a pod that the API server shows on pod->node_name, confirms it if it was assumed, and ends
  // its nomination. Returns the pod that it replaces; null: none.
  PodPtr SetPod(PodPtr pod);
  // Removes a pod, "namespace/name", and its nomination. Returns it; null: it was not here.
  PodPtr RemovePod(std::string_view key);

  // Counts the pod as on `node` from now on, and ends its nomination. False, without effect, when a pod of
  // its key is here already.
  bool AssumePod(PodPtr pod, std::string_view node);
  // Removes a pod if it is assumed; confirmed ones stay.
  void ForgetPod(std::string_view key);
  bool IsAssumedPod(std::string_view key) const;
  // Whether this very pod, by uid, is here.
  bool Holds(const PodInfo& pod) const;

  // Nominates a pod for `node`, in place of an earlier nomination; "" only ends that. Without effect for pods
  // that are here.
  void Nominate(const PodPtr& pod, std::string_view node);
  // The node that a pod is nominated for; "": none.
  std::string NominatedNode(std::string_view key) const;

  // Brings `snapshot` up to date, by the changes since the last call. It must always be the same snapshot.
  void UpdateSnapshot(Snapshot& snapshot);
  size_t node_count() const;
  size_t pod_count() const;  // with assumed ones
  size_t assumed_count() const;

 private:
  struct Placed {
    PodPtr pod;
    uint32_t slot;
    bool assumed;
  };
  struct Slot {
    std::string name;
    bool exists = false;  // the node is there; else only pods name it
    size_t users = 0;     // pods on it, and pods nominated for it
  };
  uint32_t SlotOf(std::string_view node) KEELSON_REQUIRES(mutex_);
  void Remove(std::unordered_map<std::string, Placed>::iterator it) KEELSON_REQUIRES(mutex_);
  void Unnominate(const std::string& key) KEELSON_REQUIRES(mutex_);
  void FreeIfUnused(uint32_t slot) KEELSON_REQUIRES(mutex_);
  void Log(Change change) KEELSON_REQUIRES(mutex_) { changes_.push_back(std::move(change)); }

  mutable Mutex mutex_;
  std::vector<Slot> nodes_ KEELSON_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> slots_ KEELSON_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ KEELSON_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Placed> pods_ KEELSON_GUARDED_BY(mutex_);
  size_t assumed_ KEELSON_GUARDED_BY(mutex_) = 0;  // of pods_
  std::unordered_map<std::string, std::pair<PodPtr, uint32_t>> nominated_ KEELSON_GUARDED_BY(mutex_);
  std::vector<Change> changes_ KEELSON_GUARDED_BY(mutex_);  // since the last UpdateSnapshot
};

}  // namespace keelson::scheduler
