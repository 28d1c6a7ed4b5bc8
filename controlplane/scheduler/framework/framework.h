// Extension points of scheduling, after kube-scheduler's framework. A plugin implements those it needs:
//
//   PreEnqueue -> PreFilter -> Filter (each node) -> [PostFilter when none is left]
//   -> PreScore -> Score (each that is left), Normalize -> Reserve -> Permit -> PreBind -> Bind -> PostBind
//
// PreFilter to Permit run on the scheduling thread; PreBind, Bind, PostBind and Unreserve on a binder's;
// PreEnqueue and MayHelp on any. Who has to wait blocks none of them: see PermitPlugin and PreBindPlugin.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"
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
  bool operator==(const Verdict&) const = default;

 private:
  static Verdict Of(Code code, uint16_t reason) {
    Verdict verdict;
    verdict.code = code;
    verdict.Add(reason);
    return verdict;
  }
};

// What an extension point says of a pod.
struct Status {
  enum class Code { kSuccess, kSkip, kWait, kUnschedulable, kUnresolvable, kError };
  Code code = Code::kSuccess;
  std::string message;

  bool ok() const { return code == Code::kSuccess; }
  bool skip() const { return code == Code::kSkip; }
  bool rejected() const { return code == Code::kUnschedulable || code == Code::kUnresolvable; }
  static Status Skip() { return {Code::kSkip, ""}; }
  static Status Unschedulable(std::string why) { return {Code::kUnschedulable, std::move(why)}; }
  static Status Unresolvable(std::string why) { return {Code::kUnresolvable, std::move(why)}; }
  static Status Failed(std::string why) { return {Code::kError, std::move(why)}; }
};

class Plugin;

// What plugins want to remember between extension points of one pod's cycle.
class CycleState {
 public:
  struct Data {
    virtual ~Data() = default;
  };
  void Set(const Plugin* plugin, std::unique_ptr<Data> data);
  // Null when the plugin has set nothing.
  template <typename T>
  T* Get(const Plugin* plugin) const {
    for (const auto& [owner, data] : data_) {
      if (owner == plugin) return static_cast<T*>(data.get());
    }
    return nullptr;
  }
  std::string nominated_node;  // that the pod has been promised, or ""
  bool IsPromised(const NodeInfo& node) const { return node.facts && node.facts->name == nominated_node; }
  uint64_t skip_filters = 0, skip_scores = 0;  // bits of the framework's lists: not asked for this pod

 private:
  std::vector<std::pair<const Plugin*, std::unique_ptr<Data>>> data_;
};

// Something that may make a pod schedulable.
struct ClusterEvent {
  enum class Kind : uint32_t {
    kNodeAdded = 1 << 0,
    kNodeChanged = 1 << 1,
    kPodAdded = 1 << 2,    // it is on a node now
    kPodChanged = 1 << 3,  // one on a node: labels, or it asks for less
    kPodRemoved = 1 << 4,  // it was on a node
    kStorage = 1 << 5,     // claims, volumes, classes, drivers of nodes
    kFlush = 1 << 6,       // everybody is to try
    kNamespace = 1 << 7,
  };
  Kind kind;
  std::shared_ptr<const NodeFacts> node, old_node;  // of node events; old_node of kNodeChanged
  PodPtr pod, old_pod;                              // of pod events; old_pod of kPodChanged
};
constexpr uint32_t operator|(ClusterEvent::Kind a, ClusterEvent::Kind b) {
  return static_cast<uint32_t>(a) | static_cast<uint32_t>(b);
}
constexpr uint32_t operator|(uint32_t a, ClusterEvent::Kind b) { return a | static_cast<uint32_t>(b); }

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // Kinds of events that may help pods that this plugin has ruled out. Others are not shown to MayHelp.
  virtual uint32_t interests() const { return 0; }
  // Of a pod that this plugin has ruled out: is another try worthwhile after `event`? Thread safe.
  virtual bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const {
    (void)event, (void)pod;
    return false;
  }
};

class PreEnqueuePlugin : public virtual Plugin {
 public:
  // Not ok: the pod is not to be tried, and waits until it is changed or Admits() again. Thread safe.
  virtual bool Admits(const PodInfo& pod) const = 0;
};

class PreFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    Status status;                                       // kSkip: its Filter need not be asked
    std::optional<std::vector<std::string_view>> nodes;  // only these can be right
  };
  virtual Outcome PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) = 0;
  // In a trial, `other` comes to `node` or leaves it. `node` is as it is without that.
  virtual void Moved(CycleState& state, const PodInfo& pod, const PodInfo& other, const NodeInfo& node,
                     int by) {
    (void)state, (void)pod, (void)other, (void)node, (void)by;
  }
};

class FilterPlugin : public virtual Plugin {
 public:
  // Whether the answer follows from the pod's shape and the node alone. It is then remembered.
  virtual bool local() const { return true; }
  virtual Verdict Filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // The numbers behind a refusal, for people.
  virtual std::string Explain(const CycleState& state, const PodInfo& pod, const NodeInfo& node) {
    (void)state, (void)pod, (void)node;
    return "";
  }
};

// What the filters have said of the nodes, for those that want to make room.
class NodeVerdicts {
 public:
  virtual ~NodeVerdicts() = default;
  // Slots of the nodes that were ruled out, but not for good.
  virtual std::vector<uint32_t> Resolvable() const = 0;
};

// When no node is left: makes room (preemption).
class PostFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    std::optional<std::string> nominated_node;  // "": none any more; nullopt: leaves it as it is
    std::string message;
  };
  virtual Outcome PostFilter(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                             const NodeVerdicts& verdicts) = 0;
};

class ScorePlugin : public virtual Plugin {
 public:
  static constexpr int64_t kMax = 100;
  // Whether Score follows from the pod's shape and the node alone. It is then remembered.
  virtual bool local() const { return true; }
  // With what remembered scores end: another value, and they are asked for again.
  virtual uint64_t epoch(const Snapshot&) const { return 0; }
  // `slots` are those of the feasible nodes. kSkip: nothing to say of this pod.
  virtual Status PreScore(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                          std::span<const uint32_t> slots) {
    (void)state, (void)pod, (void)snapshot, (void)slots;
    return {};
  }
  virtual int64_t Score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // Of all feasible nodes; brings them into 0..kMax.
  virtual void Normalize(const CycleState& state, std::vector<int64_t>& scores) const {
    (void)state, (void)scores;
  }
};

class ReservePlugin : public virtual Plugin {
 public:
  virtual Status Reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // Also after a failed Reserve, and maybe twice.
  virtual void Unreserve(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
};

class PermitPlugin : public virtual Plugin {
 public:
  virtual Status Permit(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
  // After kWait: what it says by now; kWait is nothing yet. Asked again when `wake` was called, on a thread
  // that all who wait share: it must not block.
  virtual Status Recall(CycleState& state, const PodInfo& pod, const std::string& node) {
    (void)state, (void)pod, (void)node;
    return {};
  }
  // Before the first pod. `wake`: some pod that waits may get another answer.
  virtual void OnChange(std::function<void()> wake) { (void)wake; }
};

class PreBindPlugin : public virtual Plugin {
 public:
  virtual Result<> PreBind(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
  // After it: whether what it has asked for is there, or cannot come; nullopt: not yet. Asked again when
  // storage has changed, on a thread that all who wait share: it must not block.
  virtual std::optional<Result<>> Prepared(CycleState& state, const PodInfo& pod) {
    (void)state, (void)pod;
    return Result<>();
  }
  // How long that may take, and what is said when it has taken longer.
  virtual std::chrono::milliseconds patience() const { return {}; }
  virtual Error Overdue() const { return Error(Code::kTimeout, "timed out waiting for the condition"); }
};

class BindPlugin : public virtual Plugin {
 public:
  // False: leaves the pod to the next bind plugin.
  virtual Result<bool> Bind(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
};

class PostBindPlugin : public virtual Plugin {
 public:
  virtual void PostBind(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
};

// Scales to 0..kMax by the largest; `reverse`: the largest becomes 0.
void NormalizeByLargest(std::vector<int64_t>& scores, bool reverse);

// What an extension point has said, and who.
struct Judgement {
  Status status;
  std::string_view plugin;
};

class PointTimes;

// The plugins of a profile, each point's in order. At most 64 a point.
class Framework {
 public:
  explicit Framework(std::string profile = "default-scheduler");
  ~Framework();
  struct Weighted {
    ScorePlugin* plugin;
    int64_t weight;
  };
  // Where a plugin takes part: all points that it implements, or those of this set.
  enum Point : uint32_t {
    kPreEnqueue = 1 << 0,
    kPreFilter = 1 << 1,
    kFilter = 1 << 2,
    kPostFilter = 1 << 3,
    kScore = 1 << 4,
    kReserve = 1 << 5,
    kPermit = 1 << 6,
    kPreBind = 1 << 7,
    kBind = 1 << 8,
    kPostBind = 1 << 9,
    kAllPoints = ~0u,
  };
  // Plugins may be shared by frameworks. `weight` of a score; 0 means 1.
  void Add(std::shared_ptr<Plugin> plugin, int64_t weight = 1, uint32_t points = kAllPoints);

  const PointTimes& times() const { return *times_; }

  // Asked to bind before all others.
  void AddFirstBinder(std::shared_ptr<Plugin> plugin);

  const std::vector<PreFilterPlugin*>& pre_filters() const { return pre_filters_; }
  const std::vector<FilterPlugin*>& filters() const { return filters_; }
  const std::vector<PostFilterPlugin*>& post_filters() const { return post_filters_; }
  const std::vector<Weighted>& scores() const { return scores_; }

  bool Admits(const PodInfo& pod) const;
  // Runs the PreFilters; not ok at the first that refuses. `only`: nodes that all of them leave, and by whom.
  Judgement PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                      std::optional<std::vector<std::string_view>>& only,
                      std::vector<std::string_view>& narrowed_by) const;
  // All filters that are not skipped, from the `first` on, until one refuses; `by` is its place in filters().
  Verdict Filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node, size_t first,
                 size_t& by) const;
  // Whether any active filter looks beyond its node.
  bool LooksAround(const CycleState& state) const;
  // All filters, with the pods that are nominated for the node already on it, if they matter at least as
  // much; and without them, should they never come.
  Verdict FilterBeside(CycleState& state, const PodInfo& pod, NodeInfo& node, size_t& by) const;
  // A trial: `other` comes to `node` or leaves it, for all that count.
  void Move(CycleState& state, const PodInfo& pod, const PodPtr& other, NodeInfo& node, int by) const;

  Judgement Reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) const;  // undone on failure
  void Unreserve(CycleState& state, const PodInfo& pod, const std::string& node) const;
  Judgement Permit(CycleState& state, const PodInfo& pod, const std::string& node) const;
  // Asks the Permit plugins again, from the `next` on; kWait: one still has nothing to say.
  Judgement Recall(CycleState& state, const PodInfo& pod, const std::string& node, size_t& next) const;
  void OnPermitChange(const std::function<void()>& wake) const;
  // Runs the PreBinds from the `next` on. Not null: go on when that plugin says that it is prepared.
  Result<PreBindPlugin*> PreBind(CycleState& state, const PodInfo& pod, const std::string& node,
                                 size_t& next) const;
  // Bind, PostBind.
  Result<> Bind(CycleState& state, const PodInfo& pod, const std::string& node) const;
  // Whether any of the plugins `rejected_by` (by name) sees hope.
  bool MayHelp(const std::vector<std::string_view>& rejected_by, const ClusterEvent& event,
               const PodInfo& pod) const;
  // Kinds of events that any of them is interested in.
  uint32_t Interests(const std::vector<std::string_view>& rejected_by) const;

 private:
  Judgement AskPermits(CycleState& state, const PodInfo& pod, const std::string& node) const;
  Judgement AskReserves(CycleState& state, const PodInfo& pod, const NodeInfo& node) const;
  Judgement AskPreFilters(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                          std::optional<std::vector<std::string_view>>& only,
                          std::vector<std::string_view>& narrowed_by) const;
  Result<PreBindPlugin*> AskPreBinds(CycleState& state, const PodInfo& pod, const std::string& node,
                                     size_t& next) const;
  Result<> AskBinds(CycleState& state, const PodInfo& pod, const std::string& node) const;

  const std::unique_ptr<PointTimes> times_;
  std::vector<std::shared_ptr<Plugin>> plugins_;
  std::vector<PreEnqueuePlugin*> pre_enqueues_;
  std::vector<PreFilterPlugin*> pre_filters_;
  std::vector<uint64_t> filter_bit_;  // of each PreFilter: its own bit among the filters, or 0
  std::vector<FilterPlugin*> filters_;
  std::vector<PostFilterPlugin*> post_filters_;
  std::vector<Weighted> scores_;
  std::vector<ReservePlugin*> reserves_;
  std::vector<PermitPlugin*> permits_;
  std::vector<PreBindPlugin*> pre_binds_;
  std::vector<BindPlugin*> binds_;
  std::vector<PostBindPlugin*> post_binds_;
};

}  // namespace keelson::scheduler
