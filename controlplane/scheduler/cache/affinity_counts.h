// What the pods on nodes mean to an incoming pod of one class, by topology domain: the terms of its affinity and
// anti-affinity that they match, and their terms that match it. Kept from one pod of the class to the next,
// and updated by the snapshot's placements. Not thread safe: the scheduling thread owns it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"

namespace keelson::scheduler {

class AffinityCounts {
 public:
  // `hard_pod_affinity_weight`: the weight of required affinity terms of existing pods, in scores.
  AffinityCounts(std::shared_ptr<const PodClass> pod_class, int32_t hard_pod_affinity_weight,
                 bool ignore_preferred_terms_of_existing_pods);

  // Brings the counts up to date with `snapshot`, always the same one, which outlives this.
  void Follow(const Snapshot& snapshot);
  // In a dry run: one pod more (by 1) or less (by -1) of class `other` on the node at `slot`.
  void UpdateWithPod(const PodClass& other, uint32_t slot, int by);

  // Whether the node has a pod that matches all required affinity terms; also true when no node has one and
  // the incoming pod matches them itself.
  bool SatisfiesPodAffinity(uint32_t slot) const;
  // Whether no pod there matches a required anti-affinity term of the incoming pod.
  bool SatisfiesPodAntiAffinity(uint32_t slot) const;
  // Whether no required anti-affinity term of a pod there matches the incoming pod.
  bool SatisfiesExistingPodsAntiAffinity(uint32_t slot) const;
  // The sum of the weights that count there.
  int64_t Score(uint32_t slot) const;

  const PodClass& pod_class() const { return *class_; }
  // Whether an anti-affinity term of any existing pod matches the incoming pod.
  bool HasExistingAntiAffinity() const { return existing_anti_affinity_sum_ > 0; }
  // Whether Score() may be other than 0 anywhere.
  bool HasTopologyScore() const { return !topology_score_.empty(); }

 private:
  struct Column {
    const TopologyColumn* topology;
    std::vector<int64_t> by_domain;
    void Add(uint32_t slot, int64_t by);
    int64_t At(uint32_t slot) const;
  };
  // What one existing pod of another class counts for.
  struct Effect {
    bool affinity = false;                             // it matches all required affinity terms
    uint64_t anti_affinity = 0;                        // bits of the anti-affinity terms that it matches
    std::vector<uint32_t> existing_anti_affinity;      // keys of its anti-affinity terms that match us
    std::vector<std::pair<uint32_t, int64_t>> scores;  // key and weight
    bool empty() const {
      return !affinity && anti_affinity == 0 && existing_anti_affinity.empty() && scores.empty();
    }
  };
  const Effect& EffectOf(const PodClass& other);
  Column& ColumnOf(std::vector<Column>& columns, uint32_t key);
  void Rebuild();
  void Count(const ClassPlacement& placement);

  const std::shared_ptr<const PodClass> class_;
  const int32_t hard_pod_affinity_weight_;
  const bool ignore_preferred_terms_of_existing_pods_;
  bool matches_itself_ = false;                        // the pod matches its own required affinity terms
  std::vector<Column> affinity_counts_;                // by affinity term
  int64_t affinity_sum_ = 0;                           // of affinity_counts_
  std::vector<Column> anti_affinity_counts_;           // by anti-affinity term
  std::vector<Column> existing_anti_affinity_counts_;  // by key
  int64_t existing_anti_affinity_sum_ = 0;             // of existing_anti_affinity_counts_
  std::vector<Column> topology_score_;                 // by key
  std::unordered_map<uint64_t, Effect> effects_;       // by class
  const Snapshot* snapshot_ = nullptr;
  uint64_t places_epoch_ = 0, namespaces_epoch_ = 0, position_ = 0;
};

}  // namespace keelson::scheduler
