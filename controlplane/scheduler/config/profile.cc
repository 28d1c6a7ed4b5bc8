#include "controlplane/scheduler/config/profile.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

namespace keelson::scheduler {

namespace {

using Point = Framework::Point;
using Make = std::unique_ptr<Plugin> (*)(const Profile&, const FrameworkHandle&);

struct Known {
  const char* name;
  int64_t weight;
  Make make;  // null where a part is missing
};

// In the order in which they take part. PrioritySort is the queue's own order.
constexpr Known kKnown[] = {
    {"SchedulingGates", 0, [](const Profile&, const FrameworkHandle&) { return NewSchedulingGates(); }},
    {"PrioritySort", 0, [](const Profile&, const FrameworkHandle&) { return std::unique_ptr<Plugin>(); }},
    {"NodeUnschedulable", 0,
     [](const Profile&, const FrameworkHandle& p) { return NewNodeUnschedulable(p.reasons); }},
    {"NodeName", 0, [](const Profile&, const FrameworkHandle& p) { return NewNodeName(p.reasons); }},
    {"TaintToleration", 3,
     [](const Profile&, const FrameworkHandle& p) { return NewTaintToleration(p.reasons); }},
    {"NodeAffinity", 2,
     [](const Profile& profile, const FrameworkHandle& p) {
       return NewNodeAffinity(p.reasons, profile.added_affinity);
     }},
    {"NodePorts", 0, [](const Profile&, const FrameworkHandle& p) { return NewNodePorts(p.reasons); }},
    {"NodeResourcesFit", 1,
     [](const Profile& profile, const FrameworkHandle& p) {
       return NewNodeResourcesFit(p.reasons, p.words.resources, profile.fit);
     }},
    {"VolumeRestrictions", 0,
     [](const Profile&, const FrameworkHandle& p) {
       return p.volumes ? NewVolumeRestrictions(p.reasons, *p.volumes) : nullptr;
     }},
    {"NodeVolumeLimits", 0,
     [](const Profile&, const FrameworkHandle& p) {
       return p.volumes ? NewNodeVolumeLimits(p.reasons, *p.volumes) : nullptr;
     }},
    {"VolumeBinding", 0,
     [](const Profile& profile, const FrameworkHandle& p) {
       return p.volumes ? NewVolumeBinding(p.reasons, *p.volumes, p.api, profile.volume_binding) : nullptr;
     }},
    {"VolumeZone", 0,
     [](const Profile&, const FrameworkHandle& p) {
       return p.volumes ? NewVolumeZone(p.reasons, *p.volumes) : nullptr;
     }},
    {"PodTopologySpread", 2,
     [](const Profile& profile, const FrameworkHandle& p) {
       return NewPodTopologySpread(p.reasons, p.words, profile.spread, p.default_selectors);
     }},
    {"InterPodAffinity", 2,
     [](const Profile& profile, const FrameworkHandle& p) {
       return NewInterPodAffinity(p.reasons, profile.inter_pod_affinity);
     }},
    {"DefaultPreemption", 0,
     [](const Profile& profile, const FrameworkHandle& p) {
       return p.preemption_executor && p.framework
                  ? NewDefaultPreemption(*p.framework, p.reasons, *p.preemption_executor, profile.preemption)
                  : nullptr;
     }},
    {"NodeResourcesBalancedAllocation", 1,
     [](const Profile& profile, const FrameworkHandle& p) {
       return NewBalancedAllocation(p.words.resources, profile.balanced);
     }},
    {"ImageLocality", 1, [](const Profile&, const FrameworkHandle&) { return NewImageLocality(); }},
    {"DefaultBinder", 0,
     [](const Profile&, const FrameworkHandle& p) { return p.api ? NewDefaultBinder(*p.api) : nullptr; }},
    {"NodeDeclaredFeatures", 0,
     [](const Profile&, const FrameworkHandle& p) { return NewNodeDeclaredFeatures(p.reasons); }},
};

struct PointName {
  Point point;
  const char* name;
  bool (*implements)(Plugin*);
};

template <typename T>
bool Implements(Plugin* plugin) {
  return dynamic_cast<T*>(plugin) != nullptr;
}

constexpr PointName kPoints[] = {
    {Framework::kPreEnqueue, "preEnqueue", Implements<PreEnqueuePlugin>},
    {Framework::kPreFilter, "preFilter", Implements<PreFilterPlugin>},
    {Framework::kFilter, "filter", Implements<FilterPlugin>},
    {Framework::kPostFilter, "postFilter", Implements<PostFilterPlugin>},
    {Framework::kScore, "score", Implements<ScorePlugin>},
    {Framework::kReserve, "reserve", Implements<ReservePlugin>},
    {Framework::kPermit, "permit", Implements<PermitPlugin>},
    {Framework::kPreBind, "preBind", Implements<PreBindPlugin>},
    {Framework::kBind, "bind", Implements<BindPlugin>},
    {Framework::kPostBind, "postBind", Implements<PostBindPlugin>},
};

bool Has(const std::vector<PluginRef>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const PluginRef& choice) { return choice.name == name; });
}

bool Disables(const PluginSet& choice, std::string_view name) {
  const auto& list = choice.disabled;
  return std::any_of(list.begin(), list.end(), [&](const std::string& d) { return d == "*" || d == name; });
}

// The order at one point: what it names of the plugins of all points, the rest of those, what it adds.
std::vector<PluginRef> AtPoint(const std::vector<PluginRef>& multi, const PluginSet& choice) {
  std::vector<PluginRef> out, added;
  for (const PluginRef& enabled : choice.enabled) (Has(multi, enabled.name) ? out : added).push_back(enabled);
  const size_t named = out.size();
  for (const PluginRef& one : multi) {
    const auto end = out.begin() + static_cast<ptrdiff_t>(named);
    const bool again = std::any_of(out.begin(), end, [&](const PluginRef& c) { return c.name == one.name; });
    if (!again && !Disables(choice, one.name)) out.push_back(one);
  }
  out.insert(out.end(), added.begin(), added.end());
  return out;
}

}  // namespace

std::vector<PluginRef> PluginsOfAllPoints(const PluginSet& choice) {
  std::vector<PluginRef> out;
  for (const Known& known : kKnown) {
    const auto enabled = std::find_if(choice.enabled.begin(), choice.enabled.end(),
                                      [&](const PluginRef& c) { return c.name == known.name; });
    if (enabled != choice.enabled.end() && !Disables(choice, known.name)) {
      out.push_back(*enabled);
    } else if (!Disables(choice, known.name)) {
      out.push_back({known.name, known.weight});
    }
  }
  for (const PluginRef& enabled : choice.enabled) {
    if (!Has(out, enabled.name)) out.push_back(enabled);
  }
  return out;
}

std::vector<std::string> KnownPlugins() {
  std::vector<std::string> out;
  for (const Known& known : kKnown) out.push_back(known.name);
  return out;
}

Result<std::unique_ptr<Framework>> MakeFramework(const Profile& profile, FrameworkHandle handle) {
  auto framework = std::make_unique<Framework>(profile.scheduler_name);
  handle.framework = framework.get();
  std::map<std::string, std::shared_ptr<Plugin>> made;
  const auto get = [&](const std::string& name) -> Result<std::shared_ptr<Plugin>> {
    if (const auto it = made.find(name); it != made.end()) return it->second;
    for (const Known& known : kKnown) {
      if (known.name == name) return made[name] = known.make(profile, handle);
    }
    return Error(Code::kInvalid,
                 fmt::format("profile {}: plugin \"{}\" does not exist", profile.scheduler_name, name));
  };
  const std::vector<PluginRef> multi = PluginsOfAllPoints(profile.multi_point);
  for (const PointName& point : kPoints) {
    const auto it = profile.points.find(point.point);
    const PluginSet none, &choice = it == profile.points.end() ? none : it->second;
    std::set<std::string> seen;
    for (const PluginRef& one : AtPoint(multi, choice)) {
      if (!seen.insert(one.name).second) {
        return Error(Code::kInvalid, fmt::format("profile {}: plugin \"{}\" is enabled twice at {}",
                                                 profile.scheduler_name, one.name, point.name));
      }
      KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<Plugin> plugin, get(one.name));
      if (!plugin) continue;
      if (!point.implements(plugin.get())) {
        if (!Has(choice.enabled, one.name)) continue;
        return Error(Code::kInvalid, fmt::format("profile {}: plugin \"{}\" does not extend {} plugin",
                                                 profile.scheduler_name, one.name, point.name));
      }
      framework->Add(std::move(plugin), one.weight, point.point);
    }
  }
  return framework;
}

}  // namespace keelson::scheduler
