// Extension points of scheduling, after kube-scheduler's framework. A plugin implements those it needs:
//
//   PreFilter -> Filter (each node) -> [PostFilter when none is left] -> Score (each that is left)
//   -> Reserve -> Permit -> PreBind -> Bind
//
// PreFilter to Permit run on the scheduling thread; PreBind, Bind and Unreserve on a binder's; MayHelp on
// any.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache.h"
#include "lib/base/error.h"

namespace keelson::scheduler {

// Why nodes are ruled out, as small numbers. Of the scheduling thread.
class Reasons {
 public:
  uint16_t Intern(std::string_view text);
  const std::string& Text(uint16_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  std::unordered_map<std::string, uint16_t> ids_;
  std::vector<std::string> texts_;
};

// What a filter says of one node. Unresolvable: even evicting pods would not help.
struct Verdict {
  enum class Code : uint8_t { kFits, kUnschedulable, kUnresolvable };
  Code code = Code::kFits;
  uint8_t count = 0;
  std::array<uint16_t, 6> reasons{};

  bool ok() const { return code == Code::kFits; }
  void Add(uint16_t reason) {
    if (count < reasons.size()) reasons[count++] = reason;
  }
  static Verdict Unschedulable(uint16_t reason) { return Of(Code::kUnschedulable, reason); }
  static Verdict Unresolvable(uint16_t reason) { return Of(Code::kUnresolvable, reason); }

 private:
  static Verdict Of(Code code, uint16_t reason) {
    Verdict verdict;
    verdict.code = code;
    verdict.Add(reason);
    return verdict;
  }
};

// What a plugin wants to remember between extension points of one pod's cycle.
struct CycleState {
  struct Data {
    virtual ~Data() = default;
  };
  std::unordered_map<std::string, std::unique_ptr<Data>> data;  // by plugin name
};

// Something that may make a pod schedulable.
struct ClusterEvent {
  enum class Kind { kNodeAdded, kNodeChanged, kPodRemoved, kFlush };
  Kind kind;
  std::shared_ptr<const NodeFacts> node, old_node;  // of node events; old_node of kNodeChanged
  PodPtr pod;                                       // of kPodRemoved: it was on a node
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // Of a pod that this plugin has ruled out: is another try worthwhile after `event`? Thread safe.
  virtual bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const = 0;
};

class PreFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    std::string reason;                                  // not empty: no node can be right, and why
    std::optional<std::vector<std::string_view>> nodes;  // only these can be right
  };
  virtual Outcome PreFilter(CycleState& state, const PodInfo& pod) = 0;
};

class FilterPlugin : public virtual Plugin {
 public:
  virtual Verdict Filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
};

// When no node is left: makes room (preemption). Returns a node to nominate, or a message.
class PostFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    std::string nominated_node, message;
  };
  virtual Outcome PostFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) = 0;
};

class ScorePlugin : public virtual Plugin {
 public:
  static constexpr int64_t kMax = 100;
  virtual int64_t Score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // Of all feasible nodes; brings them into 0..kMax.
  virtual void Normalize(std::vector<int64_t>& scores) const { (void)scores; }
  virtual int64_t weight() const { return 1; }
};

class ReservePlugin : public virtual Plugin {
 public:
  virtual Result<> Reserve(CycleState& state, const PodInfo& pod, std::string_view node) = 0;
  // Also after a failed Reserve, and maybe twice.
  virtual void Unreserve(CycleState& state, const PodInfo& pod, std::string_view node) = 0;
};

class PermitPlugin : public virtual Plugin {
 public:
  virtual Result<> Permit(CycleState& state, const PodInfo& pod, std::string_view node) = 0;
};

class PreBindPlugin : public virtual Plugin {
 public:
  virtual Result<> PreBind(CycleState& state, const PodInfo& pod, std::string_view node) = 0;
};

class BindPlugin : public virtual Plugin {
 public:
  // False: leaves the pod to the next bind plugin.
  virtual Result<bool> Bind(CycleState& state, const PodInfo& pod, std::string_view node) = 0;
};

// Scales to 0..kMax by the largest; `reverse`: the largest becomes 0.
void NormalizeByLargest(std::vector<int64_t>& scores, bool reverse);

// The plugins of a scheduler, in order.
class Framework {
 public:
  void Add(std::unique_ptr<Plugin> plugin);

  const std::vector<PreFilterPlugin*>& pre_filters() const { return pre_filters_; }
  const std::vector<FilterPlugin*>& filters() const { return filters_; }
  const std::vector<PostFilterPlugin*>& post_filters() const { return post_filters_; }
  const std::vector<ScorePlugin*>& scores() const { return scores_; }

  Result<> Reserve(CycleState& state, const PodInfo& pod, std::string_view node) const;  // undone on failure
  void Unreserve(CycleState& state, const PodInfo& pod, std::string_view node) const;
  Result<> Permit(CycleState& state, const PodInfo& pod, std::string_view node) const;
  Result<> Bind(CycleState& state, const PodInfo& pod, std::string_view node) const;  // PreBind, then Bind
  // Whether any of the plugins `rejected_by` (by name) sees hope.
  bool MayHelp(const std::vector<std::string_view>& rejected_by, const ClusterEvent& event,
               const PodInfo& pod) const;

 private:
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::vector<PreFilterPlugin*> pre_filters_;
  std::vector<FilterPlugin*> filters_;
  std::vector<PostFilterPlugin*> post_filters_;
  std::vector<ScorePlugin*> scores_;
  std::vector<ReservePlugin*> reserves_;
  std::vector<PermitPlugin*> permits_;
  std::vector<PreBindPlugin*> pre_binds_;
  std::vector<BindPlugin*> binds_;
};

}  // namespace keelson::scheduler
