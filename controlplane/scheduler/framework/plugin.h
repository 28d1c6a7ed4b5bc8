// The extension points of scheduling, after kube-scheduler's framework. A plugin implements those it needs:
//
//   PreEnqueue -> PreFilter -> Filter (each node) -> [PostFilter when no node is left]
//   -> PreScore -> Score (each node that is left), NormalizeScore -> Reserve -> Permit -> PreBind -> Bind -> PostBind
//
// Threads: PreFilter to Permit run on the scheduling thread (the scheduling cycle); PreBind, Bind, PostBind
// and Unreserve run on a dispatcher thread (the binding cycle); PreEnqueue and QueueingHint run on any
// thread. A plugin that has to wait blocks none of them: see PermitPlugin and PreBindPlugin.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/scheduler/cache/snapshot.h"
#include "controlplane/scheduler/framework/cluster_event.h"
#include "controlplane/scheduler/framework/cycle_state.h"
#include "controlplane/scheduler/framework/status.h"
#include "lib/base/error.h"

namespace keelson::scheduler {

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // The kinds of events, as bits, that may make a pod schedulable which this plugin has rejected. Other kinds
  // are never passed to QueueingHint.
  virtual uint32_t EventsToRegister() const { return 0; }
  // Whether `event` may make `pod` schedulable, which this plugin has rejected: true means Queue, false
  // QueueSkip. Thread safe.
  virtual bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const {
    (void)event, (void)pod;
    return false;
  }
};

class PreEnqueuePlugin : public virtual Plugin {
 public:
  // Whether the pod may enter activeQ. If not, it stays among the unschedulable pods until it changes or is
  // activated. Thread safe.
  virtual bool PreEnqueue(const PodInfo& pod) const = 0;
};

struct PreFilterResult {
  Status status;  // kSkip: the plugin's Filter is not called in this cycle
  // The only nodes that can fit; nullopt: all nodes. The names live as long as the snapshot.
  std::optional<std::vector<std::string_view>> node_names;
};

class PreFilterPlugin : public virtual Plugin {
 public:
  // Prepares the cycle, and may reject the pod as a whole.
  virtual PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) = 0;
  // PreFilter extensions: what Filter says of `pod` is to hold as if `other` were on `node` too, or no longer
  // on it. Only what the plugin keeps in `state` changes; `node` is still without that change.
  virtual void AddPod(CycleState& state, const PodInfo& pod, const PodInfo& other, const NodeInfo& node) {
    (void)state, (void)pod, (void)other, (void)node;
  }
  virtual void RemovePod(CycleState& state, const PodInfo& pod, const PodInfo& other, const NodeInfo& node) {
    (void)state, (void)pod, (void)other, (void)node;
  }
};

class FilterPlugin : public virtual Plugin {
 public:
  // Whether the answer follows from the pod's shape and the node alone. Such answers are kept and used for
  // other pods of the shape.
  virtual bool local() const { return true; }
  // Whether the pod fits `node`.
  virtual FilterStatus Filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // For people: the numbers behind a rejection by Filter; "" when there are none.
  virtual std::string Details(const CycleState& state, const PodInfo& pod, const NodeInfo& node) {
    (void)state, (void)pod, (void)node;
    return "";
  }
};

// The statuses that the filters gave the nodes, for PostFilter plugins.
class NodeToStatusReader {
 public:
  virtual ~NodeToStatusReader() = default;
  // Slots of the nodes with this status.
  virtual std::vector<uint32_t> NodesForStatusCode(FilterStatus::Code code) const = 0;
};

struct PostFilterResult {
  // "" clears the pod's nominated node; nullopt leaves it as it is.
  std::optional<std::string> nominated_node_name;
  std::string message;  // part of the pod's FitError
};

class PostFilterPlugin : public virtual Plugin {
 public:
  // Called when no node passed the filters. May make room, by preemption.
  virtual PostFilterResult PostFilter(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                                      const NodeToStatusReader& statuses) = 0;
};

class ScorePlugin : public virtual Plugin {
 public:
  static constexpr int64_t kMaxNodeScore = 100;
  // Whether Score follows from the pod's shape and the node alone. Such scores are kept and used for other
  // pods of the shape.
  virtual bool local() const { return true; }
  // Kept scores are dropped when this value changes.
  virtual uint64_t epoch(const Snapshot&) const { return 0; }
  // `slots` are those of the feasible nodes. kSkip: the plugin does not score this pod.
  virtual Status PreScore(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                          std::span<const uint32_t> slots) {
    (void)state, (void)pod, (void)snapshot, (void)slots;
    return {};
  }
  // Higher is better, once normalized.
  virtual int64_t Score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // Brings the scores of all feasible nodes into 0..kMaxNodeScore.
  virtual void NormalizeScore(const CycleState& state, std::vector<int64_t>& scores) const {
    (void)state, (void)scores;
  }
};

class ReservePlugin : public virtual Plugin {
 public:
  // Takes what the pod needs on `node`.
  virtual Status Reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) = 0;
  // Gives it back. Called also after a Reserve that failed, and maybe twice.
  virtual void Unreserve(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
};

class PermitPlugin : public virtual Plugin {
 public:
  // kWait: the pod becomes a waiting pod until PollPermit answers something else.
  virtual Status Permit(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
  // After kWait: the answer by now; kWait again when there is none yet. Called whenever `changed` of
  // OnPermitChange was, on the one thread of all waiting pods: it must not block.
  virtual Status PollPermit(CycleState& state, const PodInfo& pod, const std::string& node) {
    (void)state, (void)pod, (void)node;
    return {};
  }
  // Called before the first pod. The plugin calls `changed` when a waiting pod may get another answer.
  virtual void OnPermitChange(std::function<void()> changed) { (void)changed; }
};

class PreBindPlugin : public virtual Plugin {
 public:
  // Starts what has to be done before the pod is bound.
  virtual Result<> PreBind(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
  // After PreBind: whether it has succeeded or failed; nullopt: not known yet. Called again when storage has
  // changed, on the one thread of all waiting pods: it must not block.
  virtual std::optional<Result<>> PreBindDone(CycleState& state, const PodInfo& pod) {
    (void)state, (void)pod;
    return Result<>();
  }
  // How long PreBindDone may answer nullopt.
  virtual std::chrono::milliseconds PreBindTimeout() const { return {}; }
  // The error of a pod whose PreBindTimeout is over.
  virtual Error PreBindTimeoutError() const {
    return Error(Code::kTimeout, "timed out waiting for the condition");
  }
};

class BindPlugin : public virtual Plugin {
 public:
  // Binds the pod to `node`. False: leaves the pod to the next bind plugin.
  virtual Result<bool> Bind(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
};

class PostBindPlugin : public virtual Plugin {
 public:
  // The pod is bound to `node`.
  virtual void PostBind(CycleState& state, const PodInfo& pod, const std::string& node) = 0;
};

// Scales scores to 0..kMaxNodeScore by the highest one; `reverse`: the highest becomes 0.
void DefaultNormalizeScore(std::vector<int64_t>& scores, bool reverse);

}  // namespace keelson::scheduler
