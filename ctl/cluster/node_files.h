// Files of a node and of the control plane's machine that follow from a configuration: environment files of units, the
// kubelet's and kube-proxy's documents. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "ctl/config/documents.h"
#include "lib/base/error.h"

namespace keelson::ctl {

// kube-controlplane.env: KUBE_CONTROLPLANE_PKI_ARGS and KUBE_CONTROLPLANE_CLUSTER_ARGS. `can_sign`: the CA's key is on
// this machine. `etcd_cluster`: NAME=PEER-URL,... of the etcd cluster that its own etcd joins; empty: it begins one.
Result<std::string> ControlPlaneEnvironment(const InitConfiguration& config, bool can_sign,
                                            const std::string& etcd_cluster = "");
// The `etcd_cluster` of such a file's text.
std::string EtcdClusterIn(const std::string& environment);

// kube-proxy.env and kube-cni.env.
Result<std::string> ProxyEnvironment(const ClusterConfiguration& cluster, const NodeRegistration& node);
std::string CniEnvironment(const ClusterConfiguration& cluster, const NodeRegistration& node);
// csi.env.
std::string CsiEnvironment(const NodeRegistration& node);

// kubeadm-flags.env: KUBELET_KUBEADM_ARGS. `host_name`: what the kubelet takes for the node's name by itself. `register_taints`:
// the kubelet registers its node with the taints.
std::string KubeletFlags(const NodeRegistration& node, const std::string& host_name, bool register_taints);

// The cluster's KubeletConfiguration: what the administrator gave, and kubeadm's settings where nothing was given.
// `resolved`: systemd-resolved runs on this machine.
Result<boost::json::object> KubeletDocument(const InitConfiguration& config, bool resolved);
// A cluster's document on another machine: systemd-resolved's file is named where, and only where, it exists.
boost::json::object FitToMachine(boost::json::object cluster, bool resolved);
// The settings of one node: what instance-config.yaml holds, and what comes over the cluster's document.
boost::json::object InstanceDocument(const NodeRegistration& node);
boost::json::object WithInstance(boost::json::object cluster, const boost::json::object& instance);

boost::json::object ProxyDocument(const ClusterConfiguration& cluster, const boost::json::object& given);

}  // namespace keelson::ctl
