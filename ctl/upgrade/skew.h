// Kubernetes' version skew policy (kubernetes.io/releases/version-skew-policy) for an upgrade: the control plane first, one
// minor at a time; kubelets are at most three minors older than the server, and not newer. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::ctl {

struct NodeVersion {
  std::string name, kubelet;
  bool control_plane = false, ready = false;
};

// What runs in a cluster. Versions as "v1.36.2".
struct ClusterVersions {
  std::string configured;  // kubernetesVersion of kubeadm-config: what the last init or upgrade has written
  std::string server;      // of the API server, at /version
  std::vector<NodeVersion> nodes;
};

struct SkewErrors {
  std::vector<std::string> mandatory;  // no flag helps
  std::vector<std::string> skippable;  // --force goes on
};
// Whether the control plane may become `target`.
SkewErrors CheckUpgradeSkew(const ClusterVersions& running, const std::string& target);

// Whether a node may run a kubelet of version `kubelet`, below a nodectl of version `own`. kInvalid: what to do first.
Result<> CheckNodeSkew(const ClusterVersions& running, const std::string& kubelet, const std::string& own);

}  // namespace keelson::ctl
