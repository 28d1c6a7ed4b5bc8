// The API objects that a cluster has beside those that its API server makes itself: kubeadm's, with its names, so that
// `kubeadm join` of this release works, and what Keelson's units on nodes need. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "lib/base/error.h"

namespace keelson::ctl {

// An object in JSON, and what becomes of one that exists.
struct WantedObject {
  boost::json::object object;
  enum class Existing { kReplaced, kKept } existing = Existing::kReplaced;
};
using WantedObjects = std::vector<WantedObject>;

// The rights of admin.conf, and of the API server at kubelets.
WantedObjects AdminObjects();
WantedObjects KubeadmConfigObjects(const ClusterConfiguration& cluster);
// `kubelet` is the whole KubeletConfiguration; `generated`: nothing of it comes from the administrator, which the
// annotation with the hash of the document says.
WantedObjects KubeletConfigObjects(const boost::json::object& kubelet, bool generated);
// What lets tokens of the default group join nodes; without the tokens.
WantedObjects BootstrapObjects();
// `kubeconfig`: the text, with the server and the CA alone.
WantedObjects ClusterInfoObjects(const std::string& kubeconfig);
WantedObjects ProxyObjects(const boost::json::object& proxy);
WantedObjects CniObjects();
// The driver keelson-csi-local, its class, and what nodes may do as its controllers. Class and driver are the administrator's once they
// exist.
WantedObjects CsiObjects();
// The Service kube-dns: kInvalid when the service subnet cannot be parsed.
Result<WantedObjects> DnsObjects(const ClusterConfiguration& cluster);

inline constexpr char kComponentConfigHash[] = "kubeadm.kubernetes.io/component-config.hash";
std::string ComponentConfigHash(const std::string& document);  // "sha256:HEX"

// Of Keelson: which units belong on every node, and which ones on those nodes that have them installed.
struct UnitsOfNodes {
  std::vector<std::string> required, optional;
};
// The ConfigMap that tells joining nodes.
inline constexpr char kNodeUnitsMap[] = "keelson-config", kNodeUnitsKey[] = "nodeUnits",
                      kOptionalUnitsKey[] = "optionalNodeUnits";
WantedObjects NodeUnitsObjects(const UnitsOfNodes& units);

}  // namespace keelson::ctl
