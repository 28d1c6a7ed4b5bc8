#include "ctl/phases/cluster_maps.h"

#include <boost/json.hpp>

#include "ctl/cluster/objects.h"
#include "ctl/config/read.h"
#include "lib/base/text.h"
#include "lib/component/document.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kSystem[] = "kube-system";

Result<corev1::ConfigMap> ReadMap(const client::RestClient& api, const char* map) {
  auto found = api.Get<corev1::ConfigMap>(kSystem, map);
  if (!found) return found.error().Wrap(std::string("ConfigMap kube-system/") + map);
  return found;
}

Result<std::string> KeyOf(const corev1::ConfigMap& map, const char* key) {
  const auto text = map.data().find(key);
  if (text != map.data().end()) return text->second;
  return Error(Code::kInvalid, "ConfigMap kube-system/" + map.metadata().name() + " has no key " + key);
}

Result<json::object> DocumentOf(const corev1::ConfigMap& map, const char* key) {
  KEELSON_ASSIGN_OR_RETURN(const std::string text, KeyOf(map, key));
  component::DocumentProblems problems;
  Result<json::object> document = component::ParseDocument(text, problems);
  if (!document) return document.error().Wrap("ConfigMap kube-system/" + map.metadata().name());
  return document;
}

// Whether the annotation has the hash of the text, as where an administrator has not edited it.
bool IsGenerated(const corev1::ConfigMap& map, const char* key) {
  const auto& annotations = map.metadata().annotations();
  const auto hash = annotations.find(kComponentConfigHash);
  const auto text = map.data().find(key);
  return hash != annotations.end() && text != map.data().end() &&
         hash->second == ComponentConfigHash(text->second);
}

// A cluster of stock daemons has no such ConfigMap, and no right to read it.
Result<UnitsOfNodes> ReadNodeUnits(const client::RestClient& api) {
  const auto map = ReadMap(api, kNodeUnitsMap);
  if (map) return UnitsIn(*map);
  if (map.error().Is(Code::kNotFound) || map.error().Is(Code::kForbidden)) return UnitsOfNodes();
  return map.error();
}

}  // namespace

UnitsOfNodes UnitsIn(const corev1::ConfigMap& map) {
  UnitsOfNodes out;
  for (const auto& [key, units] :
       {std::pair(kNodeUnitsKey, &out.required), std::pair(kOptionalUnitsKey, &out.optional)}) {
    if (const auto text = map.data().find(key); text != map.data().end()) *units = SplitList(text->second);
  }
  return out;
}

Result<ClusterMaps> ReadClusterMaps(const client::RestClient& api) {
  ClusterMaps out;
  KEELSON_ASSIGN_OR_RETURN(const corev1::ConfigMap kubeadm, ReadMap(api, "kubeadm-config"));
  KEELSON_ASSIGN_OR_RETURN(const json::object cluster, DocumentOf(kubeadm, "ClusterConfiguration"));
  std::vector<std::string> warnings;  // of the control plane's settings: no matter of one node
  KEELSON_ASSIGN_OR_RETURN(out.cluster, ReadCluster(cluster, warnings));
  KEELSON_ASSIGN_OR_RETURN(const corev1::ConfigMap kubelet, ReadMap(api, "kubelet-config"));
  KEELSON_ASSIGN_OR_RETURN(out.kubelet, DocumentOf(kubelet, "kubelet"));
  out.kubelet_generated = IsGenerated(kubelet, "kubelet");
  KEELSON_ASSIGN_OR_RETURN(UnitsOfNodes units, ReadNodeUnits(api));
  out.units = std::move(units.required);
  out.optional_units = std::move(units.optional);
  for (const std::string& unit : out.units) {
    if (unit != "kube-proxy") continue;
    KEELSON_ASSIGN_OR_RETURN(const corev1::ConfigMap proxy, ReadMap(api, "kube-proxy"));
    KEELSON_ASSIGN_OR_RETURN(out.proxy, DocumentOf(proxy, "config.conf"));
  }
  return out;
}

}  // namespace keelson::ctl
