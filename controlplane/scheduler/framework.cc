#include "controlplane/scheduler/framework.h"

#include <algorithm>

namespace keelson::scheduler {

uint16_t Reasons::Intern(std::string_view text) {
  const auto [it, added] = ids_.try_emplace(std::string(text), static_cast<uint16_t>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return it->second;
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
void Collect(std::vector<T*>& into, Plugin* plugin) {
  if (T* point = dynamic_cast<T*>(plugin)) into.push_back(point);
}

}  // namespace

void Framework::Add(std::unique_ptr<Plugin> plugin) {
  Collect(pre_filters_, plugin.get());
  Collect(filters_, plugin.get());
  Collect(post_filters_, plugin.get());
  Collect(scores_, plugin.get());
  Collect(reserves_, plugin.get());
  Collect(permits_, plugin.get());
  Collect(pre_binds_, plugin.get());
  Collect(binds_, plugin.get());
  plugins_.push_back(std::move(plugin));
}

Result<> Framework::Reserve(CycleState& state, const PodInfo& pod, std::string_view node) const {
  for (ReservePlugin* plugin : reserves_) {
    if (Result<> reserved = plugin->Reserve(state, pod, node); !reserved) {
      Unreserve(state, pod, node);
      return reserved.error().Wrap(plugin->name());
    }
  }
  return {};
}

void Framework::Unreserve(CycleState& state, const PodInfo& pod, std::string_view node) const {
  for (auto it = reserves_.rbegin(); it != reserves_.rend(); ++it) (*it)->Unreserve(state, pod, node);
}

Result<> Framework::Permit(CycleState& state, const PodInfo& pod, std::string_view node) const {
  for (PermitPlugin* plugin : permits_) {
    if (Result<> permitted = plugin->Permit(state, pod, node); !permitted) {
      return permitted.error().Wrap(plugin->name());
    }
  }
  return {};
}

Result<> Framework::Bind(CycleState& state, const PodInfo& pod, std::string_view node) const {
  for (PreBindPlugin* plugin : pre_binds_) {
    if (Result<> prepared = plugin->PreBind(state, pod, node); !prepared) {
      return prepared.error().Wrap(plugin->name());
    }
  }
  for (BindPlugin* plugin : binds_) {
    ASSIGN_OR_RETURN(const bool bound, plugin->Bind(state, pod, node));
    if (bound) return {};
  }
  return Error(Code::kInternal, "no plugin has bound the pod");
}

bool Framework::MayHelp(const std::vector<std::string_view>& rejected_by, const ClusterEvent& event,
                        const PodInfo& pod) const {
  for (const auto& plugin : plugins_) {
    if (std::find(rejected_by.begin(), rejected_by.end(), plugin->name()) == rejected_by.end()) continue;
    if (plugin->MayHelp(event, pod)) return true;
  }
  return false;
}

}  // namespace keelson::scheduler
