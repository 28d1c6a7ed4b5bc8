// What an upgrade would change, for `nodectl upgrade plan`. Pure.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <vector>

#include "ctl/upgrade/skew.h"

namespace keelson::ctl {

// What is installed on this machine: versions by program. Programs that are not installed are absent.
struct InstalledPrograms {
  std::map<std::string, std::string> versions;
  std::string package_version;  // of the package keelson-nodectl; empty: unknown
};
// The package of a program: keelson-controlplane of kube-controlplane.
std::string PackageOf(const std::string& program);

struct Component {
  std::string name, node, current, next;
};
struct UpgradePlan {
  std::string target;
  std::vector<Component> control_plane;  // what `upgrade apply` is about
  std::vector<Component> nodes;          // kubelets, for `upgrade node` on each machine
  std::vector<std::string>
      packages;  // to install on this machine first: "keelson-kubelet", or "NAME=VERSION"
  SkewErrors skew;
  bool current = false;  // everything is of the target's version
};
// `machine`: this node's name.
UpgradePlan PlanUpgrade(const ClusterVersions& running, const InstalledPrograms& installed,
                        const std::string& machine, const std::string& target);

// "apt-get install keelson-kubelet=1.2 ..." for the packages.
std::string InstallCommand(const std::vector<std::string>& packages);

std::string UpgradePlanTable(const UpgradePlan& plan);
// UpgradePlan of output.kubeadm.k8s.io/v1alpha3.
boost::json::value UpgradePlanDocument(const UpgradePlan& plan);

}  // namespace keelson::ctl
