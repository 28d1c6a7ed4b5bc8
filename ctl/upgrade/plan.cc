#include "ctl/upgrade/plan.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "ctl/host/versions.h"
#include "ctl/output.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

bool IsOlder(const std::string& version, const std::string& target) {
  const auto one = ParseVersion(version), other = ParseVersion(target);
  return one && other && *one < *other;
}

std::string SeriesOf(const std::string& target) {
  const auto version = ParseVersion(target);
  return version ? "v" + std::to_string(version->major) + "." + std::to_string(version->minor) : target;
}

std::string Rows(const std::vector<Component>& components) {
  std::vector<std::vector<std::string>> rows = {{"COMPONENT", "NODE", "CURRENT", "TARGET"}};
  for (const Component& one : components) rows.push_back({one.name, one.node, one.current, one.next});
  return TextTable(rows);
}

void AddComponents(json::array& out, const std::vector<Component>& components) {
  for (const Component& one : components) {
    json::object item;
    item["currentVersion"] = one.current;
    item["name"] = one.name;
    item["newVersion"] = one.next;
    if (!one.node.empty()) item["nodeName"] = one.node;
    out.push_back(std::move(item));
  }
}

json::object ConfigVersion(const char* group, const char* version) {
  json::object out;
  out["currentVersion"] = version;
  out["group"] = group;
  out["manualUpgradeRequired"] = false;
  out["preferredVersion"] = version;
  return out;
}

}  // namespace

std::string PackageOf(const std::string& program) {
  if (program == "kube-controlplane") return "keelson-controlplane";
  if (program == "kube-proxy") return "keelson-proxy";
  if (program == "kube-cni") return "keelson-cni";
  return program.starts_with("keelson-") ? program : "keelson-" + program;
}

UpgradePlan PlanUpgrade(const ClusterVersions& running, const InstalledPrograms& installed,
                        const std::string& machine, const std::string& target) {
  UpgradePlan out{.target = target};
  out.control_plane.push_back({"cluster", "", running.configured, target});
  out.control_plane.push_back({"kube-apiserver", "", running.server, target});
  for (const auto& [program, version] : installed.versions) {
    if (program != "kubelet") out.control_plane.push_back({program, machine, version, target});
    if (!IsOlder(version, target)) continue;
    const std::string package = PackageOf(program);
    out.packages.push_back(installed.package_version.empty() ? package
                                                             : package + "=" + installed.package_version);
  }
  for (const NodeVersion& node : running.nodes) {
    out.nodes.push_back({"kubelet", node.name, node.kubelet, target});
  }
  out.skew = CheckUpgradeSkew(running, target);
  const auto is_current = [](const Component& one) { return one.current == one.next; };
  out.current = std::all_of(out.control_plane.begin(), out.control_plane.end(), is_current) &&
                std::all_of(out.nodes.begin(), out.nodes.end(), is_current);
  return out;
}

std::string InstallCommand(const std::vector<std::string>& packages) {
  return "apt-get install " + Join(packages, " ");
}

std::string UpgradePlanTable(const UpgradePlan& plan) {
  std::string out;
  out +=
      "Components that must be upgraded manually after you have upgraded the control plane with "
      "'nodectl upgrade apply':\n";
  out += Rows(plan.nodes) + "\n";
  out += "Upgrade to the version " + plan.target + " of nodectl:\n";
  out += Rows(plan.control_plane) + "\n";
  if (!plan.packages.empty()) {
    out += "Packages that this machine needs first:\n\n\t" + InstallCommand(plan.packages) + "\n\n";
  }
  if (plan.current) {
    out += "Everything is " + plan.target +
           " already. 'nodectl upgrade apply' writes anew what this "
           "release writes.\n";
  } else if (plan.skew.mandatory.empty()) {
    out += "You can now apply the upgrade by executing the following command:\n\n\tnodectl upgrade apply " +
           plan.target + "\n";
  }
  return out;
}

json::value UpgradePlanDocument(const UpgradePlan& plan) {
  json::array components;
  AddComponents(components, plan.nodes);
  AddComponents(components, plan.control_plane);
  json::object upgrade;
  upgrade["components"] = std::move(components);
  upgrade["description"] = "version in the " + SeriesOf(plan.target) + " series";
  json::object out;
  out["apiVersion"] = "output.kubeadm.k8s.io/v1alpha3";
  json::array& upgrades = out["availableUpgrades"].emplace_array();
  if (plan.skew.mandatory.empty()) upgrades.push_back(std::move(upgrade));
  json::array& versions = out["configVersions"].emplace_array();
  versions.push_back(ConfigVersion("kubeproxy.config.k8s.io", "v1alpha1"));
  versions.push_back(ConfigVersion("kubelet.config.k8s.io", "v1beta1"));
  out["kind"] = "UpgradePlan";
  return out;
}

}  // namespace keelson::ctl
