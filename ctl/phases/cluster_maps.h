// What a cluster's ConfigMaps say of it: kubeadm-config, kubelet-config, and those of Keelson's units.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "ctl/cluster/objects.h"
#include "ctl/config/documents.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

struct ClusterMaps {
  ClusterConfiguration cluster;
  boost::json::object kubelet;  // KubeletConfiguration
  bool kubelet_generated =
      false;  // it is as nodectl or kubeadm has written it: nothing of it is an administrator's
  boost::json::object proxy;       // KubeProxyConfiguration; empty where no unit kube-proxy belongs on nodes
  std::vector<std::string> units;  // of Keelson that belong on every node: none on a cluster of others
  std::vector<std::string> optional_units;  // and on nodes that have them
};
// Of the ConfigMap keelson-config.
UnitsOfNodes UnitsIn(const corev1::ConfigMap& map);
// Bootstrap tokens, nodes and administrators may read them. kInvalid, kBadRequest: a map cannot be understood.
Result<ClusterMaps> ReadClusterMaps(const client::RestClient& api);

}  // namespace keelson::ctl
