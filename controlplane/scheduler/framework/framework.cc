#include "controlplane/scheduler/framework/framework.h"

#include <algorithm>

#include "controlplane/scheduler/framework/metrics.h"

namespace keelson::scheduler {

uint16_t Reasons::Intern(std::string_view text) {
  const auto [it, added] = ids_.try_emplace(std::string(text), static_cast<uint16_t>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return it->second;
}

void CycleState::Set(const Plugin* plugin, std::unique_ptr<Data> data) {
  for (auto& [owner, kept] : data_) {
    if (owner == plugin) {
      kept = std::move(data);
      return;
    }
  }
  data_.emplace_back(plugin, std::move(data));
}

void DefaultNormalizeScore(std::vector<int64_t>& scores, bool reverse) {
  const int64_t largest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  for (int64_t& score : scores) {
    if (largest > 0) score = score * ScorePlugin::kMaxNodeScore / largest;
    if (reverse) score = ScorePlugin::kMaxNodeScore - score;
  }
}

namespace {

template <typename T>
void Collect(std::vector<T*>& into, Plugin* plugin, bool wanted) {
  if (T* point = wanted ? dynamic_cast<T*>(plugin) : nullptr) into.push_back(point);
}

}  // namespace

Framework::Framework(std::string profile)
    : times_(std::make_unique<ExtensionPointTimes>(std::move(profile))) {}
Framework::~Framework() = default;

void Framework::Add(std::shared_ptr<Plugin> plugin, int64_t weight, uint32_t points) {
  Plugin* p = plugin.get();
  Collect(pre_enqueues_, p, points & kPreEnqueue);
  Collect(filters_, p, points & kFilter);
  Collect(pre_filters_, p, points & kPreFilter);
  filter_bit_.assign(pre_filters_.size(), 0);
  for (size_t i = 0; i < pre_filters_.size(); ++i) {
    for (size_t j = 0; j < filters_.size(); ++j) {
      const Plugin *one = pre_filters_[i], *other = filters_[j];
      if (one == other) filter_bit_[i] = uint64_t{1} << j;
    }
  }
  Collect(post_filters_, p, points & kPostFilter);
  auto* score = points & kScore ? dynamic_cast<ScorePlugin*>(p) : nullptr;
  if (score) scores_.push_back({score, weight == 0 ? 1 : weight});
  Collect(reserves_, p, points & kReserve);
  Collect(permits_, p, points & kPermit);
  Collect(pre_binds_, p, points & kPreBind);
  Collect(binds_, p, points & kBind);
  Collect(post_binds_, p, points & kPostBind);
  if (std::find(plugins_.begin(), plugins_.end(), plugin) == plugins_.end()) {
    plugins_.push_back(std::move(plugin));
  }
}

void Framework::AddFirstBinder(std::shared_ptr<Plugin> plugin) {
  Add(std::move(plugin), 1, kBind);
  std::rotate(binds_.rbegin(), binds_.rbegin() + 1, binds_.rend());
}

bool Framework::RunPreEnqueuePlugins(const PodInfo& pod) const {
  return std::all_of(pre_enqueues_.begin(), pre_enqueues_.end(),
                     [&](const PreEnqueuePlugin* plugin) { return plugin->PreEnqueue(pod); });
}

PluginStatus Framework::RunPreFilterPlugins(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                            std::optional<std::vector<std::string_view>>& node_names,
                                            std::vector<std::string_view>& plugins_with_nodes) const {
  const PointTime start = std::chrono::steady_clock::now();
  PluginStatus result = CallPreFilterPlugins(state, pod, snapshot, node_names, plugins_with_nodes);
  times_->Observe(ExtensionPointTimes::kPreFilter, result.status.code, start);
  return result;
}

PluginStatus Framework::CallPreFilterPlugins(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                             std::optional<std::vector<std::string_view>>& node_names,
                                             std::vector<std::string_view>& plugins_with_nodes) const {
  for (size_t i = 0; i < pre_filters_.size(); ++i) {
    PreFilterPlugin& plugin = *pre_filters_[i];
    PreFilterResult result = plugin.PreFilter(state, pod, snapshot);
    if (result.status.skip()) {
      state.skip_filter_plugins |= filter_bit_[i];
      continue;
    }
    if (!result.status.ok()) return {std::move(result.status), plugin.name()};
    if (!result.node_names) continue;
    plugins_with_nodes.push_back(plugin.name());
    if (!node_names) {
      node_names = std::move(result.node_names);
    } else {
      std::erase_if(*node_names, [&](std::string_view name) {
        return std::find(result.node_names->begin(), result.node_names->end(), name) ==
               result.node_names->end();
      });
    }
  }
  return {};
}

FilterStatus Framework::RunFilterPlugins(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                         size_t first, size_t& by) const {
  for (size_t i = first; i < filters_.size(); ++i) {
    if (state.skip_filter_plugins >> i & 1) continue;
    const FilterStatus status = filters_[i]->Filter(state, pod, node);
    if (status.ok()) continue;
    by = i;
    return status;
  }
  return {};
}

bool Framework::HasNonlocalFilter(const CycleState& state) const {
  for (size_t i = 0; i < filters_.size(); ++i) {
    if (!(state.skip_filter_plugins >> i & 1) && !filters_[i]->local()) return true;
  }
  return false;
}

FilterStatus Framework::RunFilterPluginsWithNominatedPods(CycleState& state, const PodInfo& pod,
                                                          NodeInfo& node, size_t& by) const {
  std::vector<PodPtr> nominated;
  for (const PodPtr& other : node.nominated) {
    if (other->key != pod.key && other->priority >= pod.priority) nominated.push_back(other);
  }
  if (!nominated.empty()) {
    for (const PodPtr& other : nominated) AddPod(state, pod, other, node);
    const FilterStatus status = RunFilterPlugins(state, pod, node, 0, by);
    for (const PodPtr& other : nominated) RemovePod(state, pod, other, node);
    // Without them there is more room; only a nonlocal filter (required affinity) can miss them.
    if (!status.ok() || !HasNonlocalFilter(state)) return status;
  }
  return RunFilterPlugins(state, pod, node, 0, by);
}

void Framework::AddPod(CycleState& state, const PodInfo& pod, const PodPtr& other, NodeInfo& node) const {
  for (PreFilterPlugin* plugin : pre_filters_) plugin->AddPod(state, pod, *other, node);
  node.AddPod(other);
}

void Framework::RemovePod(CycleState& state, const PodInfo& pod, const PodPtr& other, NodeInfo& node) const {
  for (PreFilterPlugin* plugin : pre_filters_) plugin->RemovePod(state, pod, *other, node);
  node.RemovePod(*other);
}

PluginStatus Framework::RunReservePluginsReserve(CycleState& state, const PodInfo& pod,
                                                 const NodeInfo& node) const {
  const PointTime start = std::chrono::steady_clock::now();
  PluginStatus result = CallReservePlugins(state, pod, node);
  times_->Observe(ExtensionPointTimes::kReserve, result.status.code, start);
  return result;
}

PluginStatus Framework::CallReservePlugins(CycleState& state, const PodInfo& pod,
                                           const NodeInfo& node) const {
  for (ReservePlugin* plugin : reserves_) {
    if (Status reserved = plugin->Reserve(state, pod, node); !reserved.ok()) {
      RunReservePluginsUnreserve(state, pod, node.facts->name);
      return {std::move(reserved), plugin->name()};
    }
  }
  return {};
}

void Framework::RunReservePluginsUnreserve(CycleState& state, const PodInfo& pod,
                                           const std::string& node) const {
  for (auto it = reserves_.rbegin(); it != reserves_.rend(); ++it) (*it)->Unreserve(state, pod, node);
}

PluginStatus Framework::RunPermitPlugins(CycleState& state, const PodInfo& pod,
                                         const std::string& node) const {
  const PointTime start = std::chrono::steady_clock::now();
  PluginStatus result = CallPermitPlugins(state, pod, node);
  times_->Observe(ExtensionPointTimes::kPermit, result.status.code, start);
  return result;
}

PluginStatus Framework::CallPermitPlugins(CycleState& state, const PodInfo& pod,
                                          const std::string& node) const {
  PluginStatus result;
  for (PermitPlugin* plugin : permits_) {
    Status permitted = plugin->Permit(state, pod, node);
    if (permitted.ok()) continue;
    result = {std::move(permitted), plugin->name()};
    if (result.status.code != Status::Code::kWait) return result;
  }
  return result;
}

PluginStatus Framework::PollPermit(CycleState& state, const PodInfo& pod, const std::string& node,
                                   size_t& next) const {
  for (; next < permits_.size(); ++next) {
    if (Status status = permits_[next]->PollPermit(state, pod, node); !status.ok()) {
      return {std::move(status), permits_[next]->name()};
    }
  }
  return {};
}

void Framework::OnPermitChange(const std::function<void()>& changed) const {
  for (PermitPlugin* plugin : permits_) plugin->OnPermitChange(changed);
}

Result<PreBindPlugin*> Framework::RunPreBindPlugins(CycleState& state, const PodInfo& pod,
                                                    const std::string& node, size_t& next) const {
  const PointTime start = std::chrono::steady_clock::now();
  Result<PreBindPlugin*> result = CallPreBindPlugins(state, pod, node, next);
  times_->Observe(ExtensionPointTimes::kPreBind, result ? Status::Code::kSuccess : Status::Code::kError,
                  start);
  return result;
}

Result<PreBindPlugin*> Framework::CallPreBindPlugins(CycleState& state, const PodInfo& pod,
                                                     const std::string& node, size_t& next) const {
  while (next < pre_binds_.size()) {
    PreBindPlugin* plugin = pre_binds_[next++];
    if (Result<> result = plugin->PreBind(state, pod, node); !result) {
      return result.error().Wrap(plugin->name());
    }
    const std::optional<Result<>> prepared = plugin->PreBindDone(state, pod);
    if (!prepared) return plugin;
    if (!*prepared) return prepared->error().Wrap(plugin->name());
  }
  return nullptr;
}

Result<> Framework::RunBindPlugins(CycleState& state, const PodInfo& pod, const std::string& node) const {
  const PointTime start = std::chrono::steady_clock::now();
  Result<> bound = CallBindPlugins(state, pod, node);
  times_->Observe(ExtensionPointTimes::kBind, bound ? Status::Code::kSuccess : Status::Code::kError, start);
  return bound;
}

Result<> Framework::CallBindPlugins(CycleState& state, const PodInfo& pod, const std::string& node) const {
  for (BindPlugin* plugin : binds_) {
    KEELSON_ASSIGN_OR_RETURN(const bool bound, plugin->Bind(state, pod, node));
    if (!bound) continue;
    for (PostBindPlugin* after : post_binds_) after->PostBind(state, pod, node);
    return {};
  }
  return Error(Code::kInternal, "no plugin has bound the pod");
}

bool Framework::QueueingHint(const std::vector<std::string_view>& unschedulable_plugins,
                             const ClusterEvent& event, const PodInfo& pod) const {
  if (event.kind == ClusterEvent::Kind::kUnschedulableTimeout) return true;
  for (const auto& plugin : plugins_) {
    if (std::find(unschedulable_plugins.begin(), unschedulable_plugins.end(), plugin->name()) ==
        unschedulable_plugins.end()) {
      continue;
    }
    if ((plugin->EventsToRegister() | event.kind) != plugin->EventsToRegister()) continue;
    if (plugin->QueueingHint(event, pod)) return true;
  }
  return false;
}

uint32_t Framework::EventsToRegister(const std::vector<std::string_view>& unschedulable_plugins) const {
  uint32_t events = static_cast<uint32_t>(ClusterEvent::Kind::kUnschedulableTimeout);
  for (const auto& plugin : plugins_) {
    if (std::find(unschedulable_plugins.begin(), unschedulable_plugins.end(), plugin->name()) ==
        unschedulable_plugins.end()) {
      continue;
    }
    events |= plugin->EventsToRegister();
  }
  return events;
}

}  // namespace keelson::scheduler
