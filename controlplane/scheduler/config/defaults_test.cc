// Defaults of KubeSchedulerConfiguration at Kubernetes 1.36, with those of the plugins' arguments. That pods
// without constraints spread with maxSkew 3 by host and 5 by zone is in the property test's reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "controlplane/scheduler/config/config.h"

namespace keelson::scheduler {
namespace {

constexpr char kHead[] = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

std::string Print(const std::vector<ResourceWeight>& resources) {
  std::string out;
  for (const ResourceWeight& one : resources) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", one.name, one.weight);
  }
  return out;
}

const char* Print(NodeResourcesFitArgs::Strategy strategy) {
  switch (strategy) {
    case NodeResourcesFitArgs::Strategy::kLeastAllocated:
      return "LeastAllocated";
    case NodeResourcesFitArgs::Strategy::kMostAllocated:
      return "MostAllocated";
    case NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio:
      return "RequestedToCapacityRatio";
  }
  return "";
}

std::string Print(std::chrono::milliseconds time) { return fmt::format("{}ms", time.count()); }

struct Default {
  const char *field, *value;
  std::string (*read)(const Config&, const Profile&);
};
const Default kDefaults[] = {
    {"profiles", "1", [](const Config& c, const Profile&) { return std::to_string(c.profiles.size()); }},
    {"schedulerName", "default-scheduler", [](const Config&, const Profile& p) { return p.scheduler_name; }},
    {"percentageOfNodesToScore", "0",
     [](const Config& c, const Profile& p) {
       return std::to_string(p.percentage_of_nodes_to_score.value_or(c.percentage_of_nodes_to_score));
     }},
    {"podInitialBackoffSeconds", "1000ms",
     [](const Config& c, const Profile&) { return Print(c.initial_backoff); }},
    {"podMaxBackoffSeconds", "10000ms", [](const Config& c, const Profile&) { return Print(c.max_backoff); }},
    {"extenders", "0", [](const Config& c, const Profile&) { return std::to_string(c.extenders.size()); }},
    {"DefaultPreemptionArgs.minCandidateNodesPercentage", "10",
     [](const Config&, const Profile& p) { return std::to_string(p.preemption.min_candidates_percentage); }},
    {"DefaultPreemptionArgs.minCandidateNodesAbsolute", "100",
     [](const Config&, const Profile& p) { return std::to_string(p.preemption.min_candidates); }},
    {"InterPodAffinityArgs.hardPodAffinityWeight", "1",
     [](const Config&, const Profile& p) {
       return std::to_string(p.inter_pod_affinity.hard_pod_affinity_weight);
     }},
    {"InterPodAffinityArgs.ignorePreferredTermsOfExistingPods", "false",
     [](const Config&, const Profile& p) {
       return fmt::format("{}", p.inter_pod_affinity.ignore_preferred_terms_of_existing_pods);
     }},
    {"VolumeBindingArgs.bindTimeoutSeconds", "600",
     [](const Config&, const Profile& p) { return std::to_string(p.volume_binding.bind_timeout_seconds); }},
    {"NodeResourcesBalancedAllocationArgs.resources", "cpu:1,memory:1",
     [](const Config&, const Profile& p) { return Print(p.balanced); }},
    {"NodeResourcesFitArgs.scoringStrategy.type", "LeastAllocated",
     [](const Config&, const Profile& p) { return std::string(Print(p.fit.strategy)); }},
    {"NodeResourcesFitArgs.scoringStrategy.resources", "cpu:1,memory:1",
     [](const Config&, const Profile& p) { return Print(p.fit.resources); }},
    {"PodTopologySpreadArgs.defaultingType", "System",
     [](const Config&, const Profile& p) {
       return std::string(p.spread.system_defaults && p.spread.defaults.empty() ? "System" : "List");
     }},
};

// Each asks for nothing but the defaults.
TEST(SchedulerDefaults, AreThoseOfKubernetes136) {
  const std::string arguments = "profiles: [{pluginConfig: [{name: ";
  const std::string texts[] = {
      "",
      "profiles: []",
      "profiles: [{}]",
      "profiles: [{schedulerName: null, plugins: {multiPoint: {}}, pluginConfig: []}]",
      "{percentageOfNodesToScore: null, podInitialBackoffSeconds: null, podMaxBackoffSeconds: null}",
      arguments + "DefaultPreemption, args: {}}]}]",
      arguments + "InterPodAffinity, args: {hardPodAffinityWeight: null}}]}]",
      arguments + "VolumeBinding, args: {}}]}]",
      arguments + "NodeResourcesBalancedAllocation, args: {resources: []}}]}]",
      arguments +
          "NodeResourcesBalancedAllocation, args: {resources: [{name: cpu}, {name: memory, weight: 0}]}}]}]",
      arguments + "NodeResourcesFit, args: {}}]}]",
      arguments + "NodeResourcesFit, args: {scoringStrategy: {type: LeastAllocated, resources: []}}}]}]",
      arguments +
          "NodeResourcesFit, args: {scoringStrategy: {type: LeastAllocated, resources: "
          "[{name: cpu, weight: 0}, {name: memory}]}}}]}]",
      arguments + "PodTopologySpread, args: {defaultingType: ''}}]}]",
  };
  for (const std::string& text : texts) {
    const bool flow = text.starts_with('{');
    const auto config =
        ParseConfig(flow ? "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, " +
                               text.substr(1)
                         : kHead + text);
    ASSERT_TRUE(config) << text << config.error().message();
    for (const Default& one : kDefaults) {
      EXPECT_EQ(one.read(*config, config->profiles.at(0)), one.value) << one.field << " of " << text;
    }
  }
}

// In upstream's order. Without a weight: does not score.
TEST(SchedulerDefaults, PluginsAreThoseOfKubernetes136) {
  const struct {
    const char* name;
    int64_t weight;
    const char* absence;  // why it is not here
  } expected[] = {
      {"SchedulingGates", 0, nullptr},
      {"PrioritySort", 0, nullptr},
      {"NodeUnschedulable", 0, nullptr},
      {"NodeName", 0, nullptr},
      {"TaintToleration", 3, nullptr},
      {"NodeAffinity", 2, nullptr},
      {"NodePorts", 0, nullptr},
      {"NodeResourcesFit", 1, nullptr},
      {"VolumeRestrictions", 0, nullptr},
      {"NodeVolumeLimits", 0, nullptr},
      {"VolumeBinding", 0, nullptr},
      {"VolumeZone", 0, nullptr},
      {"PodTopologySpread", 2, nullptr},
      {"InterPodAffinity", 2, nullptr},
      {"DynamicResources", 2, "devices are not allocated yet (docs/scheduler.md)"},
      {"DefaultPreemption", 0, nullptr},
      {"NodeResourcesBalancedAllocation", 1, nullptr},
      {"ImageLocality", 1, nullptr},
      {"DefaultBinder", 0, nullptr},
      {"NodeDeclaredFeatures", 0, nullptr},
  };
  Vocabulary words;
  Reasons reasons;
  const auto framework = MakeFramework(ParseConfig(kHead)->profiles.at(0), FrameworkHandle{reasons, words});
  ASSERT_TRUE(framework) << framework.error().message();
  std::map<std::string_view, int64_t> weights;
  for (const Framework::WeightedScore& score : (*framework)->scores()) {
    weights[score.plugin->name()] = score.weight;
  }
  std::vector<std::string> want, have;
  for (const std::string& name : KnownPlugins()) have.push_back(fmt::format("{}:{}", name, weights[name]));
  for (const auto& one : expected) {
    if (!one.absence) want.push_back(fmt::format("{}:{}", one.name, one.weight));
  }
  EXPECT_EQ(have, want);
}

// Fields with defaults upstream that set nothing here.
TEST(SchedulerDefaults, WithoutAPlaceHere) {
  const struct {
    const char* text;
    bool taken;
    const char* reason;
  } cases[] = {
      {"parallelism: 16", true, "one thread decides"},
      {"clientConnection: {contentType: application/vnd.kubernetes.protobuf, qps: 50, burst: 100}", true,
       "no request is held back; the API server shares itself by priority and fairness"},
      {"leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s, "
       "resourceLock: leases, resourceNamespace: kube-system, resourceName: kube-scheduler}",
       true, "--leader-elect and its kin"},
      {"enableProfiling: true", true, "--profiling"},
      {"enableContentionProfiling: true", true, "there is no such profile outside Go"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {filterTimeout: 10s}}]}]", false,
       "there is no such plugin"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 10m}}]}]", false,
       "there is no such plugin"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(static_cast<bool>(ParseConfig(std::string(kHead) + c.text)), c.taken)
        << c.text << ": " << c.reason;
  }
}

}  // namespace
}  // namespace keelson::scheduler
