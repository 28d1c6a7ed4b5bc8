// Profiles: which plugins take part where, with what weights and settings, for pods of one
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

struct PluginChoice {
  std::string name;
  int64_t weight = 0;  // 0: 1
};

// What a configuration says of one extension point, or of all ("multiPoint").
struct PointChoice {
  std::vector<PluginChoice> enabled;
  std::vector<std::string> disabled;  // "*": all that are on by default
};

struct Profile {
  std::string scheduler_name = "default-scheduler";
  std::optional<int> percentage;  // of nodes to score; absent: as for all profiles
  PointChoice multi_point;
  std::map<Framework::Point, PointChoice> points;
  FitArgs fit;
  std::vector<ResourceWeight> balanced = {{"cpu", 1}, {"memory", 1}};
  SpreadArgs spread;
  InterPodAffinityArgs inter_pod_affinity;
  corev1::NodeAffinity added_affinity;
  PreemptionArgs preemption;
  VolumeBindingArgs volume_binding;
};

// What plugins are made from. What is null is left out, with the plugins that need it.
struct PluginParts {
  Reasons& reasons;
  Vocabulary& words;
  const WorkloadSelectors* workloads = nullptr;
  VolumeCatalog* volumes = nullptr;
  Evictor* evictor = nullptr;
  const client::RestClient* api = nullptr;
  const Framework* framework = nullptr;  // MakeFramework sets it
};

// kInvalid: a plugin that does not exist, or that has no such extension point.
Result<std::unique_ptr<Framework>> MakeFramework(const Profile& profile, PluginParts parts);

// Names of all plugins there are, in the order in which they are on by default.
std::vector<std::string> KnownPlugins();

}  // namespace keelson::scheduler
