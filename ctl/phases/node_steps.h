// Steps that init and join share: what makes this machine a node.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <functional>
#include <ostream>
#include <string>

#include "ctl/cluster/patches.h"
#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

struct KubeletSettings {
  boost::json::object cluster;  // the cluster's KubeletConfiguration
  NodeRegistration node;
  std::string host_name;
  bool register_taints = false;
  KubeletPatches patches = {};
};
// Writes config.yaml, instance-config.yaml and kubeadm-flags.env, and (re)starts the kubelet.
Result<> StartKubelet(Host& host, const KubeletSettings& settings, std::ostream& out);

// Whoever connects to the cluster with this node's certificate, which the kubelet renews.
struct NodeAccess {
  std::string server, ca_pem, cluster_name;
};
// kube-proxy's and kube-cni's files, and their (re)start. Where the unit is not installed: kNotFound, and nothing is
// written.
Result<> StartProxy(Host& host, const ClusterConfiguration& cluster, const NodeRegistration& node,
                    const boost::json::object& proxy, const NodeAccess& access, std::ostream& out);
Result<> StartCni(Host& host, const ClusterConfiguration& cluster, const NodeRegistration& node,
                  const NodeAccess& access, std::ostream& out);

// The units of CSI that this machine has installed; none is fine.
inline constexpr const char* kCsiUnits[] = {"keelson-csi-local", "keelson-csi-controller"};
bool HasCsiUnit(const Host& host);
Result<> StartCsi(Host& host, const NodeRegistration& node, const NodeAccess& access, std::ostream& out);

// Labels and taints the node as one of the control plane, once the kubelet has registered it.
inline constexpr char kNotBalanced[] = "node.kubernetes.io/exclude-from-external-load-balancers";
Result<> MarkNode(const client::RestClient& api, const NodeRegistration& registration,
                  std::chrono::seconds patience, Clock& clock);

// Asks `done` every half second until it says true. kTimeout "timed out waiting for WHAT" after `patience`; an error of
// `done` ends the wait.
Result<> Await(const std::string& what, std::chrono::seconds patience,
               const std::function<Result<bool>()>& done, Clock& clock);

}  // namespace keelson::ctl
