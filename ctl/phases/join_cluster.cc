// What a joining machine reads from the cluster.
#include <algorithm>

#include "ctl/phases/cluster_maps.h"
#include "ctl/phases/join_run.h"
#include "ctl/token/discovery.h"

namespace keelson::ctl {
namespace {

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
  KEELSON_ASSIGN_OR_RETURN(ClusterMaps maps, ReadClusterMaps(api));
  found.cluster = std::move(maps.cluster);
  found.kubelet = std::move(maps.kubelet);
  found.proxy = std::move(maps.proxy);
  found.units = std::move(maps.units);
  found.optional_units = std::move(maps.optional_units);
  KEELSON_ASSIGN_OR_RETURN(found.has_ready_namesake, HasReadyNamesake(api, config_.node.name));
  cluster_ = std::move(found);
  discovered_ = true;
  return &cluster_;
}

}  // namespace keelson::ctl
