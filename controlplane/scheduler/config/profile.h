// Profiles: the plugins of each extension point, with weights and arguments, for pods of one
// spec.schedulerName.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"
#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

struct PluginRef {
  std::string name;
  int64_t weight = 0;  // 0 means 1
};

// A configuration's plugins of one extension point, or of all ("multiPoint").
struct PluginSet {
  std::vector<PluginRef> enabled;
  std::vector<std::string> disabled;  // "*": all default plugins
};

struct Profile {
  std::string scheduler_name = "default-scheduler";
  std::optional<int> percentage_of_nodes_to_score;  // absent: that of the configuration
  PluginSet multi_point;
  std::map<Framework::Point, PluginSet> points;
  NodeResourcesFitArgs fit;
  std::vector<ResourceWeight> balanced = {{"cpu", 1}, {"memory", 1}};
  PodTopologySpreadArgs spread;
  InterPodAffinityArgs inter_pod_affinity;
  corev1::NodeAffinity added_affinity;
  DefaultPreemptionArgs preemption;
  VolumeBindingArgs volume_binding;
};

// What plugins are made with. Plugins that need a member that is null are left out. All outlive the framework.
struct FrameworkHandle {
  Reasons& reasons;
  Vocabulary& words;
  const DefaultSelectors* default_selectors = nullptr;
  VolumeCatalog* volumes = nullptr;
  PreemptionExecutor* preemption_executor = nullptr;
  const client::RestClient* api = nullptr;
  const Framework* framework = nullptr;  // MakeFramework sets it
};

// The framework of a profile. kInvalid: a plugin does not exist, or does not implement the extension point.
Result<std::unique_ptr<Framework>> MakeFramework(const Profile& profile, FrameworkHandle handle);

// The plugins that a `multiPoint` enables, in order: the default ones that it does not disable, with the weights
// that it gives, and its own.
std::vector<PluginRef> PluginsOfAllPoints(const PluginSet& multi_point);

// The names of all plugins, in the order in which they are enabled by default.
std::vector<std::string> KnownPlugins();

}  // namespace keelson::scheduler
