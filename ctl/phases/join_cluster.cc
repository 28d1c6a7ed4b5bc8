// What a joining machine reads from the cluster.
#include <algorithm>
#include <boost/json.hpp>

#include "ctl/cluster/objects.h"
#include "ctl/config/read.h"
#include "ctl/phases/join_run.h"
#include "ctl/token/discovery.h"
#include "lib/base/text.h"
#include "lib/component/document.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kSystem[] = "kube-system";

Result<std::string> ReadKey(const client::RestClient& api, const char* map, const char* key) {
  const auto found = api.Get<corev1::ConfigMap>(kSystem, map);
  if (!found) return found.error().Wrap(std::string("ConfigMap kube-system/") + map);
  const auto text = found->data().find(key);
  if (text != found->data().end()) return text->second;
  return Error(Code::kInvalid, std::string("ConfigMap kube-system/") + map + " has no key " + key);
}

Result<json::object> ReadDocument(const client::RestClient& api, const char* map, const char* key) {
  KEELSON_ASSIGN_OR_RETURN(const std::string text, ReadKey(api, map, key));
  component::DocumentProblems problems;
  Result<json::object> document = component::ParseDocument(text, problems);
  if (!document) return document.error().Wrap(std::string("ConfigMap kube-system/") + map);
  return document;
}

// A cluster of stock daemons has no such ConfigMap, and no right to read it.
Result<std::vector<std::string>> ReadNodeUnits(const client::RestClient& api) {
  const auto text = ReadKey(api, kNodeUnitsMap, kNodeUnitsKey);
  if (text) return SplitList(*text);
  if (text.error().Is(Code::kNotFound) || text.error().Is(Code::kForbidden)) {
    return std::vector<std::string>();
  }
  return text.error();
}

Result<bool> HasReadyNamesake(const client::RestClient& api, const std::string& name) {
  const auto node = api.Get<corev1::Node>("", name);
  if (!node && node.error().Is(Code::kNotFound)) return false;
  if (!node) return node.error().Wrap("cannot get Node " + name);
  const auto& conditions = node->status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [](const corev1::NodeCondition& condition) {
    return condition.type() == "Ready" && condition.status() == "True";
  });
}

}  // namespace

Result<const JoinedCluster*> JoinRun::Cluster() {
  if (discovered_) return &cluster_;
  JoinedCluster found;
  KEELSON_ASSIGN_OR_RETURN(found.access, DiscoverCluster(config_, host_, out_, clock_));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ClientFor(found.access, config_.timeouts.api_call));
  out_ << "[preflight] Reading configuration from the \"kubeadm-config\" ConfigMap in namespace "
          "\"kube-system\"...\n";
  KEELSON_ASSIGN_OR_RETURN(const json::object cluster,
                           ReadDocument(api, "kubeadm-config", "ClusterConfiguration"));
  std::vector<std::string> warnings;  // of the control plane's settings: no matter of this node
  KEELSON_ASSIGN_OR_RETURN(found.cluster, ReadCluster(cluster, warnings));
  KEELSON_ASSIGN_OR_RETURN(found.kubelet, ReadDocument(api, "kubelet-config", "kubelet"));
  KEELSON_ASSIGN_OR_RETURN(found.units, ReadNodeUnits(api));
  for (const std::string& unit : found.units) {
    if (unit != "kube-proxy") continue;
    KEELSON_ASSIGN_OR_RETURN(found.proxy, ReadDocument(api, "kube-proxy", "config.conf"));
  }
  KEELSON_ASSIGN_OR_RETURN(found.has_ready_namesake, HasReadyNamesake(api, config_.node.name));
  cluster_ = std::move(found);
  discovered_ = true;
  return &cluster_;
}

}  // namespace keelson::ctl
