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

void NormalizeByLargest(std::vector<int64_t>& scores, bool reverse) {
  const int64_t largest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  for (int64_t& score : scores) {
    if (largest > 0) score = score * ScorePlugin::kMax / largest;
    if (reverse) score = ScorePlugin::kMax - score;
  }
}

namespace {

template <typename T>
void Collect(std::vector<T*>& into, Plugin* plugin, bool wanted) {
  if (T* point = wanted ? dynamic_cast<T*>(plugin) : nullptr) into.push_back(point);
}

}  // namespace

Framework::Framework(std::string profile) : times_(std::make_unique<PointTimes>(std::move(profile))) {}
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
  if (std::find(plugins_.begin(), plugins_.end(), plugin) == plugins_.end())
    plugins_.push_back(std::move(plugin));
}

void Framework::AddFirstBinder(std::shared_ptr<Plugin> plugin) {
  Add(std::move(plugin), 1, kBind);
  std::rotate(binds_.rbegin(), binds_.rbegin() + 1, binds_.rend());
}

bool Framework::Admits(const PodInfo& pod) const {
  return std::all_of(pre_enqueues_.begin(), pre_enqueues_.end(),
                     [&](const PreEnqueuePlugin* plugin) { return plugin->Admits(pod); });
}

Judgement Framework::PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                               std::optional<std::vector<std::string_view>>& only,
                               std::vector<std::string_view>& narrowed_by) const {
  const PointTime start = std::chrono::steady_clock::now();
  Judgement judged = AskPreFilters(state, pod, snapshot, only, narrowed_by);
  times_->Observe(PointTimes::kPreFilter, judged.status.code, start);
  return judged;
}

Judgement Framework::AskPreFilters(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                   std::optional<std::vector<std::string_view>>& only,
                                   std::vector<std::string_view>& narrowed_by) const {
  for (size_t i = 0; i < pre_filters_.size(); ++i) {
    PreFilterPlugin& plugin = *pre_filters_[i];
    PreFilterPlugin::Outcome outcome = plugin.PreFilter(state, pod, snapshot);
    if (outcome.status.skip()) {
      state.skip_filters |= filter_bit_[i];
      continue;
    }
    if (!outcome.status.ok()) return {std::move(outcome.status), plugin.name()};
    if (!outcome.nodes) continue;
    narrowed_by.push_back(plugin.name());
    if (!only) {
      only = std::move(outcome.nodes);
    } else {
      std::erase_if(*only, [&](std::string_view name) {
        return std::find(outcome.nodes->begin(), outcome.nodes->end(), name) == outcome.nodes->end();
      });
    }
  }
  return {};
}

Verdict Framework::Filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node, size_t first,
                          size_t& by) const {
  for (size_t i = first; i < filters_.size(); ++i) {
    if (state.skip_filters >> i & 1) continue;
    const Verdict verdict = filters_[i]->Filter(state, pod, node);
    if (verdict.ok()) continue;
    by = i;
    return verdict;
  }
  return {};
}

bool Framework::LooksAround(const CycleState& state) const {
  for (size_t i = 0; i < filters_.size(); ++i) {
    if (!(state.skip_filters >> i & 1) && !filters_[i]->local()) return true;
  }
  return false;
}

Verdict Framework::FilterBeside(CycleState& state, const PodInfo& pod, NodeInfo& node, size_t& by) const {
  std::vector<PodPtr> beside;
  for (const PodPtr& other : node.nominated) {
    if (other->key != pod.key && other->priority >= pod.priority) beside.push_back(other);
  }
  if (!beside.empty()) {
    for (const PodPtr& other : beside) Move(state, pod, other, node, 1);
    const Verdict verdict = Filter(state, pod, node, 0, by);
    for (const PodPtr& other : beside) Move(state, pod, other, node, -1);
    // Without them there is only more room, unless others are what draws the pod here.
    if (!verdict.ok() || !LooksAround(state)) return verdict;
  }
  return Filter(state, pod, node, 0, by);
}

void Framework::Move(CycleState& state, const PodInfo& pod, const PodPtr& other, NodeInfo& node,
                     int by) const {
  for (PreFilterPlugin* plugin : pre_filters_) plugin->Moved(state, pod, *other, node, by);
  if (by > 0) {
    node.AddPod(other);
  } else {
    node.RemovePod(*other);
  }
}

Judgement Framework::Reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) const {
  const PointTime start = std::chrono::steady_clock::now();
  Judgement judged = AskReserves(state, pod, node);
  times_->Observe(PointTimes::kReserve, judged.status.code, start);
  return judged;
}

Judgement Framework::AskReserves(CycleState& state, const PodInfo& pod, const NodeInfo& node) const {
  for (ReservePlugin* plugin : reserves_) {
    if (Status reserved = plugin->Reserve(state, pod, node); !reserved.ok()) {
      Unreserve(state, pod, node.facts->name);
      return {std::move(reserved), plugin->name()};
    }
  }
  return {};
}

void Framework::Unreserve(CycleState& state, const PodInfo& pod, const std::string& node) const {
  for (auto it = reserves_.rbegin(); it != reserves_.rend(); ++it) (*it)->Unreserve(state, pod, node);
}

Judgement Framework::Permit(CycleState& state, const PodInfo& pod, const std::string& node) const {
  const PointTime start = std::chrono::steady_clock::now();
  Judgement judged = AskPermits(state, pod, node);
  times_->Observe(PointTimes::kPermit, judged.status.code, start);
  return judged;
}

Judgement Framework::AskPermits(CycleState& state, const PodInfo& pod, const std::string& node) const {
  Judgement judgement;
  for (PermitPlugin* plugin : permits_) {
    Status permitted = plugin->Permit(state, pod, node);
    if (permitted.ok()) continue;
    judgement = {std::move(permitted), plugin->name()};
    if (judgement.status.code != Status::Code::kWait) return judgement;
  }
  return judgement;
}

Judgement Framework::Recall(CycleState& state, const PodInfo& pod, const std::string& node,
                            size_t& next) const {
  for (; next < permits_.size(); ++next) {
    if (Status says = permits_[next]->Recall(state, pod, node); !says.ok())
      return {std::move(says), permits_[next]->name()};
  }
  return {};
}

void Framework::OnPermitChange(const std::function<void()>& wake) const {
  for (PermitPlugin* plugin : permits_) plugin->OnChange(wake);
}

Result<PreBindPlugin*> Framework::PreBind(CycleState& state, const PodInfo& pod, const std::string& node,
                                          size_t& next) const {
  const PointTime start = std::chrono::steady_clock::now();
  Result<PreBindPlugin*> asked = AskPreBinds(state, pod, node, next);
  times_->Observe(PointTimes::kPreBind, asked ? Status::Code::kSuccess : Status::Code::kError, start);
  return asked;
}

Result<PreBindPlugin*> Framework::AskPreBinds(CycleState& state, const PodInfo& pod, const std::string& node,
                                              size_t& next) const {
  while (next < pre_binds_.size()) {
    PreBindPlugin* plugin = pre_binds_[next++];
    if (Result<> asked = plugin->PreBind(state, pod, node); !asked) return asked.error().Wrap(plugin->name());
    const std::optional<Result<>> prepared = plugin->Prepared(state, pod);
    if (!prepared) return plugin;
    if (!*prepared) return prepared->error().Wrap(plugin->name());
  }
  return nullptr;
}

Result<> Framework::Bind(CycleState& state, const PodInfo& pod, const std::string& node) const {
  const PointTime start = std::chrono::steady_clock::now();
  Result<> bound = AskBinds(state, pod, node);
  times_->Observe(PointTimes::kBind, bound ? Status::Code::kSuccess : Status::Code::kError, start);
  return bound;
}

Result<> Framework::AskBinds(CycleState& state, const PodInfo& pod, const std::string& node) const {
  for (BindPlugin* plugin : binds_) {
    ASSIGN_OR_RETURN(const bool bound, plugin->Bind(state, pod, node));
    if (!bound) continue;
    for (PostBindPlugin* after : post_binds_) after->PostBind(state, pod, node);
    return {};
  }
  return Error(Code::kInternal, "no plugin has bound the pod");
}

bool Framework::MayHelp(const std::vector<std::string_view>& rejected_by, const ClusterEvent& event,
                        const PodInfo& pod) const {
  if (event.kind == ClusterEvent::Kind::kFlush) return true;
  for (const auto& plugin : plugins_) {
    if (std::find(rejected_by.begin(), rejected_by.end(), plugin->name()) == rejected_by.end()) continue;
    if ((plugin->interests() | event.kind) != plugin->interests()) continue;
    if (plugin->MayHelp(event, pod)) return true;
  }
  return false;
}

uint32_t Framework::Interests(const std::vector<std::string_view>& rejected_by) const {
  uint32_t interests = static_cast<uint32_t>(ClusterEvent::Kind::kFlush);
  for (const auto& plugin : plugins_) {
    if (std::find(rejected_by.begin(), rejected_by.end(), plugin->name()) == rejected_by.end()) continue;
    interests |= plugin->interests();
  }
  return interests;
}

}  // namespace keelson::scheduler
