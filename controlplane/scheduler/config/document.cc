#include "controlplane/scheduler/config/document.h"

#include <set>
#include <string>

#include "controlplane/scheduler/config/profile.h"

namespace keelson::scheduler {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr char kApiVersion[] = "kubescheduler.config.k8s.io/v1";

bool IsZero(const value& field) {
  return field == value("") || field == value("0s") || field == value(0) || field == value(0.0) ||
         (field.is_array() && field.get_array().empty());
}

// For a pointer in Go: only an absent field has the default.
void Default(object& in, std::string_view field, value preset) {
  value& place = in[field];
  if (place.is_null()) place = std::move(preset);
}

// For a value in Go: a zero is absent too.
void DefaultOfZero(object& in, std::string_view field, value preset) {
  value& place = in[field];
  if (place.is_null() || IsZero(place)) place = std::move(preset);
}

object& Section(object& in, std::string_view field) {
  value& place = in[field];
  return place.is_object() ? place.get_object() : place.emplace_object();
}

array& List(object& in, std::string_view field) {
  value& place = in[field];
  return place.is_array() ? place.get_array() : place.emplace_array();
}

void SetClientDefaults(object& client) {
  Default(client, "kubeconfig", "");
  Default(client, "acceptContentTypes", "");
  DefaultOfZero(client, "contentType", "application/vnd.kubernetes.protobuf");
  DefaultOfZero(client, "qps", 50);
  DefaultOfZero(client, "burst", 100);
}

void SetLeaderDefaults(object& leader) {
  Default(leader, "leaderElect", true);
  DefaultOfZero(leader, "leaseDuration", "15s");
  DefaultOfZero(leader, "renewDeadline", "10s");
  DefaultOfZero(leader, "retryPeriod", "2s");
  DefaultOfZero(leader, "resourceLock", "leases");
  DefaultOfZero(leader, "resourceName", "kube-scheduler");
  DefaultOfZero(leader, "resourceNamespace", "kube-system");
}

void SetResources(object& in) {
  DefaultOfZero(in, "resources", array{object{{"name", "cpu"}}, object{{"name", "memory"}}});
  for (value& resource : List(in, "resources")) DefaultOfZero(resource.as_object(), "weight", 1);
}

// False: the plugin has no arguments.
bool SetArguments(const std::string& plugin, object& in) {
  if (plugin == "DefaultPreemption") {
    Default(in, "minCandidateNodesPercentage", 10);
    Default(in, "minCandidateNodesAbsolute", 100);
  } else if (plugin == "InterPodAffinity") {
    Default(in, "hardPodAffinityWeight", 1);
    Default(in, "ignorePreferredTermsOfExistingPods", false);
  } else if (plugin == "NodeResourcesBalancedAllocation") {
    SetResources(in);
  } else if (plugin == "NodeResourcesFit") {
    object& strategy = Section(in, "scoringStrategy");
    DefaultOfZero(strategy, "type", "LeastAllocated");
    SetResources(strategy);
  } else if (plugin == "PodTopologySpread") {
    DefaultOfZero(in, "defaultingType", "System");
  } else if (plugin == "VolumeBinding") {
    Default(in, "bindTimeoutSeconds", 600);
  } else if (plugin != "NodeAffinity") {
    return false;
  }
  in["apiVersion"] = kApiVersion;
  in["kind"] = plugin + "Args";
  return true;
}

PluginSet SetOf(const object& point) {
  PluginSet out;
  if (const value* list = point.if_contains("enabled"); list && list->is_array()) {
    for (const value& item : list->get_array()) {
      const value* weight = item.as_object().if_contains("weight");
      out.enabled.push_back({std::string(item.at("name").as_string()),
                             weight && weight->is_number() ? weight->to_number<int64_t>() : 0});
    }
  }
  if (const value* list = point.if_contains("disabled"); list && list->is_array()) {
    for (const value& item : list->get_array()) out.disabled.emplace_back(item.at("name").as_string());
  }
  return out;
}

// Returns the names of all enabled plugins, at whichever point.
std::set<std::string> SetPlugins(object& plugins) {
  std::set<std::string> names;
  for (const char* point : {"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
                            "score", "reserve", "permit", "preBind", "bind", "postBind", "multiPoint"}) {
    for (const PluginRef& one : SetOf(Section(plugins, point)).enabled) names.insert(one.name);
  }
  object& all = Section(plugins, "multiPoint");
  array enabled;
  for (const PluginRef& one : PluginsOfAllPoints(SetOf(all))) {
    names.insert(one.name);
    object& item = enabled.emplace_back(object{{"name", one.name}}).get_object();
    if (one.weight != 0) item["weight"] = one.weight;
  }
  all["enabled"] = std::move(enabled);
  return names;
}

void SetProfileDefaults(object& profile) {
  std::set<std::string> plugins = SetPlugins(Section(profile, "plugins"));
  array& configured = List(profile, "pluginConfig");
  for (value& item : configured) {
    const std::string name(item.at("name").as_string());
    SetArguments(name, Section(item.as_object(), "args"));
    plugins.erase(name);
  }
  for (const std::string& name : plugins) {
    object args;
    if (SetArguments(name, args)) configured.push_back(object{{"name", name}, {"args", std::move(args)}});
  }
}

}  // namespace

object WithDefaults(object document) {
  SetClientDefaults(Section(document, "clientConnection"));
  SetLeaderDefaults(Section(document, "leaderElection"));
  Default(document, "parallelism", 16);
  Default(document, "percentageOfNodesToScore", 0);
  Default(document, "podInitialBackoffSeconds", 1);
  Default(document, "podMaxBackoffSeconds", 10);
  Default(document, "enableProfiling", true);
  if (document["enableProfiling"] == value(true)) Default(document, "enableContentionProfiling", true);
  array& profiles = List(document, "profiles");
  if (profiles.empty()) profiles.push_back(object());
  for (value& profile : profiles) {
    if (!profile.is_object()) profile.emplace_object();
    if (profiles.size() == 1) Default(profile.get_object(), "schedulerName", "default-scheduler");
    SetProfileDefaults(profile.get_object());
  }
  return document;
}

}  // namespace keelson::scheduler
