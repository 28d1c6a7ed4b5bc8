// A profile's plugins, and how each extension point runs them (see plugin.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/scheduler/framework/plugin.h"

namespace keelson::scheduler {

class ExtensionPointTimes;

// The plugins of a profile, in order, at most 64 an extension point. Immutable after the last Add(); each
// method runs on the threads that plugin.h names for its extension point.
class Framework {
 public:
  explicit Framework(std::string profile = "default-scheduler");
  ~Framework();
  struct WeightedScore {
    ScorePlugin* plugin;
    int64_t weight;
  };
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
  // Adds a plugin, which other frameworks may share, at those of `points` that it implements. `weight` is
  // that of its score; 0 means 1.
  void Add(std::shared_ptr<Plugin> plugin, int64_t weight = 1, uint32_t points = kAllPoints);
  // Adds a bind plugin before all others.
  void AddFirstBinder(std::shared_ptr<Plugin> plugin);

  const ExtensionPointTimes& times() const { return *times_; }
  const std::vector<PreFilterPlugin*>& pre_filters() const { return pre_filters_; }
  const std::vector<FilterPlugin*>& filters() const { return filters_; }
  const std::vector<PostFilterPlugin*>& post_filters() const { return post_filters_; }
  const std::vector<WeightedScore>& scores() const { return scores_; }

  // ---- the scheduling queue ----
  // Whether all PreEnqueue plugins let the pod into activeQ.
  bool RunPreEnqueuePlugins(const PodInfo& pod) const;
  // Whether the hint of any of the plugins `unschedulable_plugins` (by name), which rejected the pod, is
  // Queue.
  bool QueueingHint(const std::vector<std::string_view>& unschedulable_plugins, const ClusterEvent& event,
                    const PodInfo& pod) const;
  // The kinds of events, as bits, that any of these plugins has registered.
  uint32_t EventsToRegister(const std::vector<std::string_view>& unschedulable_plugins) const;

  // ---- the scheduling cycle ----
  // Runs the PreFilter plugins up to the first that rejects the pod. `node_names` becomes the nodes that all
  // of them allow (nullopt: every node), `plugins_with_nodes` the plugins that restricted it.
  PluginStatus RunPreFilterPlugins(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                   std::optional<std::vector<std::string_view>>& node_names,
                                   std::vector<std::string_view>& plugins_with_nodes) const;
  // Runs filters()[first] and those after it, without the skipped ones, up to the first that rejects the
  // node; `by` becomes that one's position.
  FilterStatus RunFilterPlugins(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                size_t first, size_t& by) const;
  // Runs all filters twice: as if the pods of at least the same priority that are nominated for the node were
  // on it, and without them, as they may never come. The second run is left out where it cannot matter.
  // `node` and `state` are changed meanwhile, and are as before in the end.
  FilterStatus RunFilterPluginsWithNominatedPods(CycleState& state, const PodInfo& pod, NodeInfo& node,
                                                 size_t& by) const;
  // Whether any filter that is not skipped depends on more than the pod's shape and the node.
  bool HasNonlocalFilter(const CycleState& state) const;
  // Runs the PreFilter extensions and then changes `node`: `other` is on it, or no longer on it, for the rest
  // of a dry run.
  void AddPod(CycleState& state, const PodInfo& pod, const PodPtr& other, NodeInfo& node) const;
  void RemovePod(CycleState& state, const PodInfo& pod, const PodPtr& other, NodeInfo& node) const;
  // Runs all Reserve plugins; after a failure Unreserve has been called.
  PluginStatus RunReservePluginsReserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) const;
  void RunReservePluginsUnreserve(CycleState& state, const PodInfo& pod, const std::string& node) const;
  // kWait when no Permit plugin rejects the pod and any wants it to wait.
  PluginStatus RunPermitPlugins(CycleState& state, const PodInfo& pod, const std::string& node) const;

  // ---- the binding cycle ----
  // Asks the Permit plugins again, from number `next` on, which is moved forward. kWait: one has no answer
  // yet.
  PluginStatus PollPermit(CycleState& state, const PodInfo& pod, const std::string& node, size_t& next) const;
  // Passes `changed` to all Permit plugins. Before the first pod.
  void OnPermitChange(const std::function<void()>& changed) const;
  // Runs the PreBind plugins from number `next` on, which is moved forward. Null: all are done. Otherwise
  // the plugin whose PreBindDone has to be awaited before the call is repeated.
  Result<PreBindPlugin*> RunPreBindPlugins(CycleState& state, const PodInfo& pod, const std::string& node,
                                           size_t& next) const;
  // Runs the Bind plugins up to the first that binds the pod, then the PostBind plugins. kInternal when none
  // binds it.
  Result<> RunBindPlugins(CycleState& state, const PodInfo& pod, const std::string& node) const;

 private:
  PluginStatus CallPermitPlugins(CycleState& state, const PodInfo& pod, const std::string& node) const;
  PluginStatus CallReservePlugins(CycleState& state, const PodInfo& pod, const NodeInfo& node) const;
  PluginStatus CallPreFilterPlugins(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                    std::optional<std::vector<std::string_view>>& node_names,
                                    std::vector<std::string_view>& plugins_with_nodes) const;
  Result<PreBindPlugin*> CallPreBindPlugins(CycleState& state, const PodInfo& pod, const std::string& node,
                                            size_t& next) const;
  Result<> CallBindPlugins(CycleState& state, const PodInfo& pod, const std::string& node) const;

  const std::unique_ptr<ExtensionPointTimes> times_;
  std::vector<std::shared_ptr<Plugin>> plugins_;
  std::vector<PreEnqueuePlugin*> pre_enqueues_;
  std::vector<PreFilterPlugin*> pre_filters_;
  std::vector<uint64_t> filter_bit_;  // by PreFilter plugin: its own bit among the filters, or 0
  std::vector<FilterPlugin*> filters_;
  std::vector<PostFilterPlugin*> post_filters_;
  std::vector<WeightedScore> scores_;
  std::vector<ReservePlugin*> reserves_;
  std::vector<PermitPlugin*> permits_;
  std::vector<PreBindPlugin*> pre_binds_;
  std::vector<BindPlugin*> binds_;
  std::vector<PostBindPlugin*> post_binds_;
};

}  // namespace keelson::scheduler
