#include "controlplane/scheduler/config/config.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/base/file.h"
#include "lib/component/document_reader.h"

namespace keelson::scheduler {

using component::DocumentReader;

namespace {

constexpr char kApiVersion[] = "kubescheduler.config.k8s.io/v1";

constexpr std::pair<const char*, Framework::Point> kPoints[] = {
    {"preEnqueue", Framework::kPreEnqueue},
    {"preFilter", Framework::kPreFilter},
    {"filter", Framework::kFilter},
    {"postFilter", Framework::kPostFilter},
    {"score", Framework::kScore},
    {"reserve", Framework::kReserve},
    {"permit", Framework::kPermit},
    {"preBind", Framework::kPreBind},
    {"bind", Framework::kBind},
    {"postBind", Framework::kPostBind},
};

template <typename T>
void ReadMessage(DocumentReader& in, const char* field, const boost::json::value& value, T& out) {
  api::DecodeReport report;
  if (Result<> decoded = api::DecodeJson(boost::json::serialize(value), out, &report); !decoded) {
    in.Problem(field, decoded.error().message());
  }
  for (const std::string& problem : report.problems) in.Problem(field, problem);
}

void ReadChoice(DocumentReader& in, PluginSet& out) {
  const auto known = [&](const std::string& name) {
    const std::vector<std::string> plugins = KnownPlugins();
    if (std::find(plugins.begin(), plugins.end(), name) == plugins.end()) {
      in.Problem("name", fmt::format("Invalid value: \"{}\": plugin does not exist", name));
    }
  };
  in.List("enabled", [&](DocumentReader& item) {
    PluginRef& choice = out.enabled.emplace_back();
    item.Read("name", choice.name);
    item.Read("weight", choice.weight);
    known(choice.name);
    if (choice.weight < 0) {
      item.Problem("weight", fmt::format("Invalid value: {}: must not be negative", choice.weight));
    }
  });
  in.List("disabled", [&](DocumentReader& item) {
    std::string& name = out.disabled.emplace_back();
    item.Read("name", name);
    item.Ignore({"weight"});
    if (name != "*") known(name);
  });
}

void ReadPlugins(DocumentReader& in, Profile& profile) {
  in.Object("multiPoint", [&](DocumentReader& point) { ReadChoice(point, profile.multi_point); });
  for (const auto& [name, point] : kPoints) {
    in.Object(name, [&, at = point](DocumentReader& reader) { ReadChoice(reader, profile.points[at]); });
  }
  // A plugin that scores prepares for it where it scores; the queue has one order.
  PluginSet ignored;
  in.Object("preScore", [&](DocumentReader& point) { ReadChoice(point, ignored); });
  PluginSet order;
  in.Object("queueSort", [&](DocumentReader& point) { ReadChoice(point, order); });
  for (const PluginRef& choice : order.enabled) {
    if (choice.name != "PrioritySort") {
      in.Problem("queueSort", "Invalid value: only PrioritySort sorts the queue");
    }
  }
}

void ReadResources(DocumentReader& in, std::vector<ResourceWeight>& out) {
  std::vector<ResourceWeight> read;
  in.List("resources", [&](DocumentReader& item) {
    ResourceWeight& resource = read.emplace_back();
    resource.weight = 0;
    item.Read("name", resource.name);
    item.Read("weight", resource.weight);
    if (resource.name.empty()) item.Problem("name", "Required value");
    if (resource.weight == 0) resource.weight = 1;
    if (resource.weight < 1 || resource.weight > 100) {
      item.Problem("weight",
                   fmt::format("Invalid value: {}: resource weight of {} not in valid range [1, 100]",
                               resource.weight, resource.name));
    }
  });
  if (!read.empty()) out = std::move(read);
}

void ReadShape(DocumentReader& in, NodeResourcesFitArgs& out) {
  in.List("shape", [&](DocumentReader& item) {
    std::pair<int64_t, int64_t>& point = out.shape.emplace_back();
    item.Read("utilization", point.first);
    item.Read("score", point.second);
    if (point.first < 0 || point.first > 100) {
      item.Problem("utilization", fmt::format("Invalid value: {}: not in valid range [0-100]", point.first));
    }
    if (point.second < 0 || point.second > 10) {
      item.Problem("score", fmt::format("Invalid value: {}: not in valid range [0-10]", point.second));
    }
  });
  for (size_t i = 1; i < out.shape.size(); ++i) {
    if (out.shape[i].first <= out.shape[i - 1].first) {
      in.Problem(fmt::format("shape[{}].utilization", i),
                 fmt::format("Invalid value: {}: utilization values must be sorted in increasing order",
                             out.shape[i].first));
    }
  }
}

void ReadFit(DocumentReader& in, NodeResourcesFitArgs& out) {
  in.Read("ignoredResources", out.ignored_resources);
  in.Read("ignoredResourceGroups", out.ignored_groups);
  in.Object("scoringStrategy", [&](DocumentReader& strategy) {
    std::string type = "LeastAllocated";
    strategy.Read("type", type);
    ReadResources(strategy, out.resources);
    if (type == "MostAllocated") {
      out.strategy = NodeResourcesFitArgs::Strategy::kMostAllocated;
    } else if (type == "RequestedToCapacityRatio") {
      out.strategy = NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio;
    } else if (type != "LeastAllocated") {
      strategy.Problem("type", fmt::format("Unsupported value: \"{}\": supported values: \"LeastAllocated\", "
                                           "\"MostAllocated\", \"RequestedToCapacityRatio\"",
                                           type));
    }
    strategy.Object("requestedToCapacityRatio", [&](DocumentReader& ratio) { ReadShape(ratio, out); });
    if (out.strategy == NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio && out.shape.empty()) {
      strategy.Problem("requestedToCapacityRatio.shape",
                       "Required value: at least one point must be specified");
    }
  });
}

void ReadSpread(DocumentReader& in, PodTopologySpreadArgs& out) {
  std::string type;
  in.Read("defaultingType", type);
  if (type.empty()) type = "System";
  if (type != "System" && type != "List") {
    in.Problem("defaultingType",
               fmt::format("Unsupported value: \"{}\": supported values: \"System\", \"List\"", type));
  }
  out.system_defaults = type == "System";
  const boost::json::value* list = in.Raw("defaultConstraints");
  if (!list) return;
  if (!list->is_array()) return in.Problem("defaultConstraints", "Invalid value: must be a list");
  for (const boost::json::value& item : list->get_array()) {
    ReadMessage(in, "defaultConstraints", item, out.defaults.emplace_back());
    if (out.defaults.back().has_label_selector()) {
      in.Problem("defaultConstraints",
                 "Forbidden: constraint must not define a selector, as they deduced for each pod");
    }
  }
  if (out.system_defaults && !out.defaults.empty()) {
    in.Problem("defaultConstraints", "Invalid value: when .defaultingType is System");
  }
}

void ReadArgs(const std::string& name, DocumentReader& in, Profile& profile) {
  in.Ignore({"apiVersion", "kind"});
  if (name == "NodeResourcesFit") {
    ReadFit(in, profile.fit);
  } else if (name == "NodeResourcesBalancedAllocation") {
    ReadResources(in, profile.balanced);
  } else if (name == "PodTopologySpread") {
    ReadSpread(in, profile.spread);
  } else if (name == "InterPodAffinity") {
    in.Read("hardPodAffinityWeight", profile.inter_pod_affinity.hard_pod_affinity_weight);
    in.Read("ignorePreferredTermsOfExistingPods",
            profile.inter_pod_affinity.ignore_preferred_terms_of_existing_pods);
    const int weight = profile.inter_pod_affinity.hard_pod_affinity_weight;
    if (weight < 0 || weight > 100) {
      in.Problem("hardPodAffinityWeight",
                 fmt::format("Invalid value: {}: not in valid range [0-100]", weight));
    }
  } else if (name == "NodeAffinity") {
    if (const boost::json::value* added = in.Raw("addedAffinity")) {
      ReadMessage(in, "addedAffinity", *added, profile.added_affinity);
    }
  } else if (name == "DefaultPreemption") {
    in.Read("minCandidateNodesPercentage", profile.preemption.min_candidates_percentage);
    in.Read("minCandidateNodesAbsolute", profile.preemption.min_candidates);
    const int percentage = profile.preemption.min_candidates_percentage;
    if (percentage < 0 || percentage > 100) {
      in.Problem("minCandidateNodesPercentage",
                 fmt::format("Invalid value: {}: not in valid range [0, 100]", percentage));
    }
    if (profile.preemption.min_candidates < 0) {
      in.Problem("minCandidateNodesAbsolute", fmt::format("Invalid value: {}: not in valid range [0, inf)",
                                                          profile.preemption.min_candidates));
    }
  } else if (name == "VolumeBinding") {
    in.Read("bindTimeoutSeconds", profile.volume_binding.bind_timeout_seconds);
    in.Ignore({"shape"});
    if (profile.volume_binding.bind_timeout_seconds < 0) {
      in.Problem("bindTimeoutSeconds",
                 fmt::format("Invalid value: {}: invalid BindTimeoutSeconds, should not be a "
                             "negative value",
                             profile.volume_binding.bind_timeout_seconds));
    }
  }
}

void CheckPercentage(DocumentReader& in, int percentage) {
  if (percentage < 0 || percentage > 100) {
    in.Problem("percentageOfNodesToScore",
               fmt::format("Invalid value: {}: not in valid range [0-100]", percentage));
  }
}

void ReadProfile(DocumentReader& in, Profile& profile) {
  in.Read("schedulerName", profile.scheduler_name);
  if (profile.scheduler_name.empty()) in.Problem("schedulerName", "Required value");
  if (in.Raw("percentageOfNodesToScore")) {
    int percentage = 0;
    in.Read("percentageOfNodesToScore", percentage);
    CheckPercentage(in, percentage);
    profile.percentage_of_nodes_to_score = percentage;
  }
  in.Object("plugins", [&](DocumentReader& plugins) { ReadPlugins(plugins, profile); });
  std::set<std::string> seen;
  in.List("pluginConfig", [&](DocumentReader& item) {
    std::string name;
    item.Read("name", name);
    if (!seen.insert(name).second) item.Problem("name", fmt::format("Duplicate value: \"{}\"", name));
    item.Object("args", [&](DocumentReader& args) { ReadArgs(name, args, profile); });
  });
}

// PEM text, from a file.
void ReadPem(DocumentReader& in, const char* file_field, const char* data_field, std::string& out) {
  std::string file;
  in.Read(file_field, file);
  if (in.Raw(data_field)) in.Problem(data_field, fmt::format("Forbidden: use {}", file_field));
  if (file.empty()) return;
  Result<std::string> read = ReadFile(file);
  if (!read) return in.Problem(file_field, read.error().message());
  out = *std::move(read);
}

void ReadExtender(DocumentReader& in, ExtenderConfig& out) {
  in.Read("urlPrefix", out.url_prefix);
  in.Read("filterVerb", out.filter_verb);
  in.Read("prioritizeVerb", out.prioritize_verb);
  in.Read("bindVerb", out.bind_verb);
  in.Read("preemptVerb", out.preempt_verb);
  in.Read("weight", out.weight);
  in.Read("nodeCacheCapable", out.node_cache_capable);
  in.Read("ignorable", out.ignorable);
  std::chrono::milliseconds timeout{0};
  in.Read("httpTimeout", timeout);
  if (timeout.count() != 0) out.timeout = timeout;
  in.Ignore({"enableHTTPS"});
  in.Object("tlsConfig", [&](DocumentReader& tls) {
    tls.Read("insecure", out.insecure);
    tls.Read("serverName", out.server_name);
    ReadPem(tls, "caFile", "caData", out.ca_pem);
    ReadPem(tls, "certFile", "certData", out.certificate_pem);
    ReadPem(tls, "keyFile", "keyData", out.key_pem);
  });
  in.List("managedResources", [&](DocumentReader& item) {
    std::string name;
    bool ignored = false;
    item.Read("name", name);
    item.Read("ignoredByScheduler", ignored);
    out.managed_resources.push_back(name);
    if (ignored) out.ignored_by_scheduler.push_back(name);
  });
  if (out.url_prefix.empty()) in.Problem("urlPrefix", "Required value");
  if (!out.prioritize_verb.empty() && out.weight <= 0) {
    in.Problem("weight",
               fmt::format("Invalid value: {}: must have a positive weight applied to it", out.weight));
  }
}

// Zeros are unset, as for values in Go.
void ReadLeaderElection(DocumentReader& in, LeaderElectionConfig& out) {
  const auto read = [&](const char* field, auto& place) {
    typename std::remove_reference_t<decltype(place)>::value_type given{};
    in.Read(field, given);
    if (given != decltype(given){}) place = std::move(given);
  };
  if (bool elect = true; in.Has("leaderElect")) {
    in.Read("leaderElect", elect);
    out.elect = elect;
  }
  read("leaseDuration", out.lease_duration);
  read("renewDeadline", out.renew_deadline);
  read("retryPeriod", out.retry_period);
  read("resourceName", out.resource_name);
  read("resourceNamespace", out.resource_namespace);
  std::string lock;
  in.Read("resourceLock", lock);
  if (!lock.empty() && lock != "leases") {
    in.Problem("resourceLock", fmt::format("Invalid value: \"{}\": resourceLock must be \"leases\"", lock));
  }
}

void ReadAll(DocumentReader& in, Config& config) {
  std::string api_version, kind;
  in.Read("apiVersion", api_version);
  in.Read("kind", kind);
  if (api_version != kApiVersion || kind != "KubeSchedulerConfiguration") {
    in.Problem("apiVersion",
               fmt::format("Invalid value: \"{}\", kind \"{}\": must be KubeSchedulerConfiguration of {}",
                           api_version, kind, kApiVersion));
  }
  in.Ignore({"parallelism", "healthzBindAddress", "metricsBindAddress", "enableProfiling",
             "enableContentionProfiling", "delayCacheUntilActive"});
  in.Object("leaderElection",
            [&](DocumentReader& leader) { ReadLeaderElection(leader, config.leader_election); });
  in.Object("clientConnection", [&](DocumentReader& client) {
    client.Ignore({"acceptContentTypes", "contentType", "qps", "burst"});
    client.Read("kubeconfig", config.kubeconfig);
  });
  in.Read("percentageOfNodesToScore", config.percentage_of_nodes_to_score);
  CheckPercentage(in, config.percentage_of_nodes_to_score);
  int64_t initial = config.initial_backoff.count() / 1000, most = config.max_backoff.count() / 1000;
  in.Read("podInitialBackoffSeconds", initial);
  in.Read("podMaxBackoffSeconds", most);
  if (initial <= 0) {
    in.Problem("podInitialBackoffSeconds", fmt::format("Invalid value: {}: must be greater than 0", initial));
  }
  if (most < initial) {
    in.Problem(
        "podMaxBackoffSeconds",
        fmt::format("Invalid value: {}: must be greater than or equal to PodInitialBackoffSeconds", most));
  }
  config.initial_backoff = std::chrono::seconds(initial);
  config.max_backoff = std::chrono::seconds(most);
  std::vector<Profile> profiles;
  std::set<std::string> names;
  const boost::json::value* list = in.Raw("profiles");
  const bool several = list && list->is_array() && list->get_array().size() > 1;
  in.List("profiles", [&](DocumentReader& item) {
    Profile& profile = profiles.emplace_back();
    if (several) profile.scheduler_name.clear();  // each says its own
    ReadProfile(item, profile);
    const std::string& name = profile.scheduler_name;
    if (!names.insert(name).second) {
      item.Problem("schedulerName", fmt::format("Duplicate value: \"{}\"", name));
    }
  });
  if (!profiles.empty()) config.profiles = std::move(profiles);
  size_t binders = 0;
  in.List("extenders", [&](DocumentReader& item) {
    ReadExtender(item, config.extenders.emplace_back());
    binders += !config.extenders.back().bind_verb.empty();
  });
  if (binders > 1) in.Problem("extenders", "Invalid value: only one extender can implement bind");
}

}  // namespace

Result<Config> ParseConfig(std::string_view text) {
  component::DocumentProblems problems{.words = component::TypeWords::kInvalidValue};
  const auto document = component::ParseDocument(text, problems);
  if (!document) return Error(Code::kInvalid, document.error().message());
  Config config;
  {
    DocumentReader in(*document, problems);
    ReadAll(in, config);
  }
  if (Result<> fine = component::RefuseProblems(problems, "; "); !fine) {
    return fine.error().Wrap("KubeSchedulerConfiguration");
  }
  return config;
}

}  // namespace keelson::scheduler
