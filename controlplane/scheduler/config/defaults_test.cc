// Defaults of KubeSchedulerConfiguration at Kubernetes 1.36, with those of the plugins' arguments. That pods
// without constraints spread with maxSkew 3 by host and 5 by zone is in the property test's reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "controlplane/scheduler/config/config.h"
#include "controlplane/scheduler/config/document.h"
#include "lib/k8s/text/yaml.h"

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

// ---- the document with its defaults ----

boost::json::object Document(const std::string& text) {
  const auto read = k8s::YamlToJson(kHead + text);
  EXPECT_TRUE(read) << text;
  return read ? boost::json::parse(*read).as_object() : boost::json::object();
}

// The value at a path such as "profiles[0].schedulerName", as JSON. Arguments of a plugin, "NAMEArgs.field", are
// those of the first profile.
std::string At(const boost::json::object& document, std::string path) {
  const boost::json::value* at = nullptr;
  boost::json::value whole(document);
  if (const size_t args = path.find("Args."); args != std::string::npos) {
    for (const auto& item : whole.at("profiles").at(0).at("pluginConfig").as_array()) {
      if (item.at("name") == boost::json::value(path.substr(0, args))) at = &item.at("args");
    }
    path = path.substr(args + 5);
  } else {
    at = &whole;
  }
  for (size_t begin = 0; at && begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    const bool first = name.ends_with("[0]");
    if (first) name.resize(name.size() - 3);
    at = at->is_object() ? at->get_object().if_contains(name) : nullptr;
    if (at && first) at = &at->get_array().at(0);
    begin = end + 1;
  }
  return at ? boost::json::serialize(*at) : "absent";
}

TEST(SchedulerDefaults, OfTheDocumentAreThoseOfKubernetes136) {
  const char* weights = R"([{"name":"cpu","weight":1},{"name":"memory","weight":1}])";
  const std::pair<std::string, std::string> defaults[] = {
      {"parallelism", "16"},
      {"profiles[0].schedulerName", R"("default-scheduler")"},
      {"percentageOfNodesToScore", "0"},
      {"leaderElection.leaderElect", "true"},
      {"leaderElection.leaseDuration", R"("15s")"},
      {"leaderElection.renewDeadline", R"("10s")"},
      {"leaderElection.retryPeriod", R"("2s")"},
      {"leaderElection.resourceLock", R"("leases")"},
      {"leaderElection.resourceNamespace", R"("kube-system")"},
      {"leaderElection.resourceName", R"("kube-scheduler")"},
      {"clientConnection.contentType", R"("application/vnd.kubernetes.protobuf")"},
      {"clientConnection.qps", "50"},
      {"clientConnection.burst", "100"},
      {"podInitialBackoffSeconds", "1"},
      {"podMaxBackoffSeconds", "10"},
      {"enableProfiling", "true"},
      {"enableContentionProfiling", "true"},
      {"DefaultPreemptionArgs.minCandidateNodesPercentage", "10"},
      {"DefaultPreemptionArgs.minCandidateNodesAbsolute", "100"},
      {"InterPodAffinityArgs.hardPodAffinityWeight", "1"},
      {"VolumeBindingArgs.bindTimeoutSeconds", "600"},
      {"NodeResourcesBalancedAllocationArgs.resources", weights},
      {"NodeResourcesFitArgs.scoringStrategy.type", R"("LeastAllocated")"},
      {"NodeResourcesFitArgs.scoringStrategy.resources", weights},
      {"PodTopologySpreadArgs.defaultingType", R"("System")"},
      {"NodeAffinityArgs.kind", R"("NodeAffinityArgs")"},
  };
  for (const char* text :
       {"", "profiles: null", "profiles: [{}]", "leaderElection: {leaseDuration: 0s, resourceName: ''}",
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{name: "
        "cpu}, "
        "{name: memory, weight: 0}]}}}]}]"}) {
    const boost::json::object document = WithDefaults(Document(text));
    for (const auto& [path, want] : defaults) EXPECT_EQ(At(document, path), want) << path << " of " << text;
  }
}

// What a document says stays, and what is written configures the same.
TEST(SchedulerDefaults, OfTheDocumentKeepWhatItSays) {
  const boost::json::object document = WithDefaults(Document(
      "percentageOfNodesToScore: 30\nenableProfiling: false\n"
      "leaderElection: {leaderElect: false, leaseDuration: 30s}\n"
      "profiles:\n- schedulerName: mine\n  plugins:\n"
      "    multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 5}]}\n"
      "    score: {disabled: [{name: NodeResourcesFit}]}\n"
      "  pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 0}}]\n"
      "- schedulerName: other\n  plugins: {multiPoint: {disabled: [{name: '*'}], "
      "enabled: [{name: DefaultBinder}, {name: PrioritySort}]}}\n"
      "extenders: [{urlPrefix: 'http://a', filterVerb: f}]"));
  EXPECT_EQ(At(document, "percentageOfNodesToScore"), "30");
  EXPECT_EQ(At(document, "enableContentionProfiling"), "absent");
  EXPECT_EQ(At(document, "leaderElection.leaderElect"), "false");
  EXPECT_EQ(At(document, "leaderElection.leaseDuration"), R"("30s")");
  EXPECT_EQ(At(document, "VolumeBindingArgs.bindTimeoutSeconds"), "0");
  EXPECT_EQ(At(document, "profiles[0].plugins.score.disabled"), R"([{"name":"NodeResourcesFit"}])");
  const std::string plugins = At(document, "profiles[0].plugins.multiPoint.enabled");
  EXPECT_NE(plugins.find(R"({"name":"NodeAffinity","weight":5})"), std::string::npos) << plugins;
  EXPECT_EQ(plugins.find("ImageLocality"), std::string::npos) << plugins;
  const boost::json::value& other = document.at("profiles").at(1);
  EXPECT_EQ(boost::json::serialize(other.at("plugins").at("multiPoint").at("enabled")),
            R"([{"name":"DefaultBinder"},{"name":"PrioritySort"}])");
  EXPECT_EQ(other.at("pluginConfig"), boost::json::value(boost::json::array()));

  EXPECT_EQ(WithDefaults(document), document);
  const auto config = ParseConfig(boost::json::serialize(document));
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->profiles.size(), 2u);
  EXPECT_EQ(config->leader_election.elect, false);
  EXPECT_EQ(config->leader_election.lease_duration, std::chrono::seconds(30));
}

TEST(SchedulerDefaults, AllPluginsAreInTheDocument) {
  const boost::json::object document = WithDefaults(Document(""));
  std::vector<std::string> names;
  for (const auto& item :
       document.at("profiles").at(0).at("plugins").at("multiPoint").at("enabled").as_array()) {
    names.emplace_back(item.at("name").as_string());
  }
  EXPECT_EQ(names, KnownPlugins());
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
