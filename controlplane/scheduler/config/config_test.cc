// KubeSchedulerConfiguration, and the profiles that are made of it.
#include "controlplane/scheduler/config/config.h"

#include <gtest/gtest.h>

namespace keelson::scheduler {
namespace {

constexpr char kHead[] = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

std::string Problems(const std::string& text) {
  const Result<Config> config = ParseConfig(kHead + text);
  return config ? "" : config.error().message();
}

// Names of the plugins that score, with weights.
std::string ScoresOf(const std::string& text) {
  const Result<Config> config = ParseConfig(kHead + text);
  if (!config) return config.error().message();
  Vocabulary words;
  Reasons reasons;
  const auto framework = MakeFramework(config->profiles[0], FrameworkHandle{reasons, words});
  if (!framework) return framework.error().message();
  std::string out;
  for (const Framework::WeightedScore& score : (*framework)->scores()) {
    out += (out.empty() ? "" : " ") + std::string(score.plugin->name()) + "*" + std::to_string(score.weight);
  }
  return out;
}

TEST(Config, PointsAndWeights) {
  const struct {
    const char* plugins;
    const char* scores;
  } cases[] = {
      {"score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 7}]}", "ImageLocality*7"},
      {"score: {enabled: [{name: NodeResourcesFit, weight: 9}]}",
       "NodeResourcesFit*9 TaintToleration*3 NodeAffinity*2 PodTopologySpread*2 InterPodAffinity*2 "
       "NodeResourcesBalancedAllocation*1 ImageLocality*1"},
      {"multiPoint: {disabled: [{name: ImageLocality}, {name: PodTopologySpread}], enabled: [{name: "
       "NodeAffinity, weight: 5}]}",
       "TaintToleration*3 NodeAffinity*5 NodeResourcesFit*1 InterPodAffinity*2 "
       "NodeResourcesBalancedAllocation*1"},
      // What is named without a weight has weight 1, whatever it has by default.
      {"multiPoint: {enabled: [{name: TaintToleration}, {name: InterPodAffinity, weight: 0}]}",
       "TaintToleration*1 NodeAffinity*2 NodeResourcesFit*1 PodTopologySpread*2 InterPodAffinity*1 "
       "NodeResourcesBalancedAllocation*1 ImageLocality*1"},
      {"score: {enabled: [{name: PodTopologySpread}]}",
       "PodTopologySpread*1 TaintToleration*3 NodeAffinity*2 NodeResourcesFit*1 InterPodAffinity*2 "
       "NodeResourcesBalancedAllocation*1 ImageLocality*1"},
      {"filter: {disabled: [{name: InterPodAffinity}]}",
       "TaintToleration*3 NodeAffinity*2 NodeResourcesFit*1 PodTopologySpread*2 InterPodAffinity*2 "
       "NodeResourcesBalancedAllocation*1 ImageLocality*1"},
      {"filter: {enabled: [{name: ImageLocality}]}",
       "profile default-scheduler: plugin \"ImageLocality\" does not extend filter plugin"},
      {"score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}",
       "profile default-scheduler: plugin \"ImageLocality\" is enabled twice at score"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ScoresOf(std::string("profiles:\n- plugins: {") + c.plugins + "}\n"), c.scores) << c.plugins;
  }
}

TEST(Config, Arguments) {
  const Result<Config> config = ParseConfig(std::string(kHead) + R"(
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
leaderElection: {leaderElect: true}
profiles:
- schedulerName: packing
  percentageOfNodesToScore: 50
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      ignoredResourceGroups: [example.com]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 5}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 20, minCandidateNodesAbsolute: 7}
extenders:
- urlPrefix: http://127.0.0.1:9/x
  filterVerb: filter
  bindVerb: bind
  httpTimeout: 2s
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
)");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->percentage_of_nodes_to_score, 30);
  EXPECT_EQ(config->initial_backoff, std::chrono::seconds(2));
  const Profile& profile = config->profiles[0];
  EXPECT_EQ(profile.scheduler_name, "packing");
  EXPECT_EQ(profile.percentage_of_nodes_to_score, 50);
  EXPECT_EQ(profile.fit.strategy, NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio);
  EXPECT_EQ(profile.fit.resources, (std::vector<ResourceWeight>{{"cpu", 3}}));
  EXPECT_EQ(profile.fit.shape.size(), 2u);
  EXPECT_EQ(profile.fit.ignored_groups, std::vector<std::string>{"example.com"});
  EXPECT_EQ(profile.inter_pod_affinity.hard_pod_affinity_weight, 5);
  EXPECT_FALSE(profile.spread.system_defaults);
  EXPECT_EQ(profile.spread.defaults[0].max_skew(), 2);
  EXPECT_EQ(profile.preemption.min_candidates, 7);
  ASSERT_EQ(config->extenders.size(), 1u);
  EXPECT_EQ(config->extenders[0].timeout, std::chrono::seconds(2));
  EXPECT_EQ(config->extenders[0].ignored_by_scheduler, std::vector<std::string>{"example.com/gpu"});
}

TEST(Config, ExtendersHaveFiveSeconds) {
  for (const char* timeout : {"", ", httpTimeout: 0s"}) {
    const auto config = ParseConfig(std::string(kHead) + "extenders: [{urlPrefix: 'http://a', filterVerb: f" +
                                    timeout + "}]");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->extenders.at(0).timeout, std::chrono::seconds(5)) << timeout;
  }
}

// An absent field, and a zero where Go has a value, say nothing.
TEST(Config, OfTheProcess) {
  const auto some = ParseConfig(std::string(kHead) +
                                "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 50}\n"
                                "leaderElection: {leaderElect: false, retryPeriod: 1s, leaseDuration: 0s, "
                                "resourceLock: leases, resourceNamespace: elections}\n");
  ASSERT_TRUE(some) << some.error().message();
  EXPECT_EQ(some->kubeconfig, "/etc/kubernetes/scheduler.conf");
  EXPECT_EQ(some->leader_election.elect, false);
  EXPECT_EQ(some->leader_election.retry_period, std::chrono::seconds(1));
  EXPECT_EQ(some->leader_election.lease_duration, std::nullopt);
  EXPECT_EQ(some->leader_election.resource_namespace, "elections");
  const auto none = ParseConfig(std::string(kHead) + "leaderElection: {}\n");
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->kubeconfig, "");
  EXPECT_EQ(none->leader_election.elect, std::nullopt);
}

TEST(Config, Mistakes) {
  const struct {
    const char* text;
    const char* problem;
  } cases[] = {
      {"percentageOfNodesToScore: 101",
       "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"},
      {"podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"},
      {"podMaxBackoffSeconds: 0", "podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to"},
      {"profile: []", "unknown field \"profile\""},
      {"profiles: [{schedulerName: a}, {schedulerName: a}]",
       "profiles[1].schedulerName: Duplicate value: \"a\""},
      {"profiles: [{schedulerName: ''}]", "profiles[0].schedulerName: Required value"},
      {"profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"},
      {"profiles: [{plugins: {score: {enabled: [{name: Nope}]}}}]",
       "profiles[0].plugins.score.name: Invalid value: \"Nope\": plugin does not exist"},
      {"profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
       "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range "
       "[0-100]"},
      {"extenders: [{filterVerb: f}]", "extenders[0].urlPrefix: Required value"},
      {"extenders: [{urlPrefix: 'http://a', prioritizeVerb: p}]",
       "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"},
      {"extenders: [{urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://b', bindVerb: b}]",
       "extenders: Invalid value: only one extender can implement bind"},
      {"profiles: 7", "profiles: Invalid value: must be a list"},
      {"leaderElection: {resourceLock: endpoints}",
       "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock must be \"leases\""},
      {"leaderElection: {lease: 1s}", "unknown field \"leaderElection.lease\""},
      {"clientConnection: {kubeConfig: x}", "unknown field \"clientConnection.kubeConfig\""},
  };
  for (const auto& c : cases) {
    EXPECT_NE(Problems(c.text).find(c.problem), std::string::npos)
        << c.text << " gives: " << Problems(c.text);
  }
  EXPECT_NE(ParseConfig("kind: Pod\napiVersion: v1\n")
                .error()
                .message()
                .find("must be KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1"),
            std::string::npos);
}

}  // namespace
}  // namespace keelson::scheduler
