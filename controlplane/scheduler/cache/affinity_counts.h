// What pods on nodes mean to an incoming pod of one class, by topology: where those are that it wants to be
// with or apart from, and where those are that want it. Kept from one pod of the class to the next; follows
// the snapshot by its placements. Of the scheduling thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"

namespace keelson::scheduler {

class AffinityCounts {
 public:
  // `hard_weight`: of others' required affinity, in scores.
  AffinityCounts(std::shared_ptr<const PodClass> pod_class, int32_t hard_weight,
                 bool ignore_others_preferred);

  void Follow(const Snapshot& snapshot);
  // One pod more or less, in a trial.
  void Move(const PodClass& other, uint32_t slot, int by);

  // Required affinity: all terms have company there, or nobody has anywhere and the pod would be its own.
  bool Together(uint32_t slot) const;
  bool Apart(uint32_t slot) const;    // required anti-affinity of its own
  bool Welcome(uint32_t slot) const;  // required anti-affinity of others
  int64_t Score(uint32_t slot) const;

  const PodClass& pod_class() const { return *class_; }
  bool AnyUnwelcome() const { return unwelcome_ > 0; }
  bool AnyScore() const { return !scores_.empty(); }

 private:
  struct Column {
    const TopologyColumn* topology;
    std::vector<int64_t> by_domain;
    void Add(uint32_t slot, int64_t by);
    int64_t At(uint32_t slot) const;
  };
  // What one pod of another class adds, where it is.
  struct Effect {
    bool company = false;           // all terms of the affinity mean it
    uint64_t apart = 0;             // bits of the anti-affinity terms that mean it
    std::vector<uint32_t> against;  // keys of its own anti-affinity terms that mean the incoming pod
    std::vector<std::pair<uint32_t, int64_t>> scores;  // key and weight
    bool Nothing() const { return !company && apart == 0 && against.empty() && scores.empty(); }
  };
  const Effect& EffectOf(const PodClass& other);
  Column& ColumnOf(std::vector<Column>& columns, uint32_t key);
  void Rebuild();
  void Count(const ClassPlacement& placement);

  const std::shared_ptr<const PodClass> class_;
  const int32_t hard_weight_;
  const bool ignore_others_preferred_;
  bool company_for_itself_ = false;               // the pod is one of those that its own affinity means
  std::vector<Column> company_;                   // by affinity term
  int64_t companions_ = 0;                        // sum of company_
  std::vector<Column> apart_;                     // by anti-affinity term
  std::vector<Column> against_;                   // by key
  int64_t unwelcome_ = 0;                         // sum of against_
  std::vector<Column> scores_;                    // by key
  std::unordered_map<uint64_t, Effect> effects_;  // by class
  const Snapshot* snapshot_ = nullptr;
  uint64_t places_epoch_ = 0, namespaces_epoch_ = 0, position_ = 0;
};

}  // namespace keelson::scheduler
