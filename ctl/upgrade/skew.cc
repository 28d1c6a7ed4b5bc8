#include "ctl/upgrade/skew.h"

#include <algorithm>

#include "ctl/host/versions.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr int kServerSkew = 1, kKubeletSkew = 3;

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

// A pre-release may leave out minors with --force, as kubeadm has it.
void AddSkew(SkewErrors& out, const Version& target, std::string message) {
  (target.pre_release.empty() ? out.mandatory : out.skippable).push_back(std::move(message));
}

void CheckKubelets(SkewErrors& out, const ClusterVersions& running, const Version& target) {
  std::vector<std::string> old, newer;
  for (const NodeVersion& node : running.nodes) {
    const auto kubelet = ParseVersion(node.kubelet);
    if (!kubelet) {
      out.skippable.push_back("couldn't parse kubelet version " + node.kubelet + " of node " + node.name);
    } else if (kubelet->major == target.major && kubelet->minor < target.minor - kKubeletSkew) {
      old.push_back(node.name + " " + node.kubelet);
    } else if (kubelet->minor > target.minor) {
      newer.push_back(node.name + " " + node.kubelet);
    }
  }
  if (!old.empty()) {
    out.skippable.push_back("There are kubelets in this cluster that are too old that have these versions [" +
                            Join(old, " ") + "]: upgrade them first");
  }
  if (!newer.empty()) {
    out.skippable.push_back("There are kubelets in this cluster that are newer than the control plane [" +
                            Join(newer, " ") + "]: no kubelet may be newer than the API server");
  }
}

}  // namespace

SkewErrors CheckUpgradeSkew(const ClusterVersions& running, const std::string& target) {
  SkewErrors out;
  const auto wanted = ParseVersion(target);
  if (!wanted) {
    out.mandatory.push_back(wanted.error().message());
    return out;
  }
  // The older of the two counts: an upgrade that was killed may have replaced the server alone.
  const auto configured = ParseVersion(running.configured);
  const auto server = ParseVersion(running.server);
  if (!configured) {
    out.mandatory.push_back("Unable to fetch cluster version: " + configured.error().message());
    return out;
  }
  if (wanted->minor > configured->minor + kServerSkew) {
    AddSkew(out, *wanted,
            "Specified version to upgrade to " + Quoted(target) +
                " is too high; nodectl can upgrade only 1 minor version at a time, and the cluster is " +
                running.configured);
  }
  if (wanted->minor < configured->minor - kServerSkew) {
    AddSkew(out, *wanted,
            "Specified version to downgrade to " + Quoted(target) +
                " is too low; nodectl can downgrade only 1 minor version at a time, and the cluster is " +
                running.configured);
  }
  if (server && std::abs(server->minor - wanted->minor) > kServerSkew) {
    out.mandatory.push_back("The API server that answers is " + running.server +
                            ": API servers of a cluster are at most one minor apart");
  }
  CheckKubelets(out, running, *wanted);
  return out;
}

Result<> CheckNodeSkew(const ClusterVersions& running, const std::string& kubelet, const std::string& own) {
  KEELSON_ASSIGN_OR_RETURN(const Version server, ParseVersion(running.server));
  KEELSON_ASSIGN_OR_RETURN(const Version cluster, ParseVersion(running.configured));
  KEELSON_ASSIGN_OR_RETURN(const Version node, ParseVersion(kubelet));
  KEELSON_ASSIGN_OR_RETURN(const Version tool, ParseVersion(own));
  if (tool.minor > cluster.minor || tool.minor > server.minor) {
    return Error(Code::kInvalid,
                 "the control plane is " + running.configured + " and nodectl is " + own +
                     ": upgrade the control plane first, by 'nodectl upgrade apply' on its machine");
  }
  if (node.minor > server.minor) {
    return Error(Code::kInvalid, "the installed kubelet is " + kubelet + ", newer than the API server (" +
                                     running.server + "): upgrade the control plane first");
  }
  if (node.minor < server.minor - kKubeletSkew) {
    return Error(Code::kInvalid, "the installed kubelet is " + kubelet +
                                     ", more than three minors older than the API server (" + running.server +
                                     "): install a newer keelson-kubelet first");
  }
  return {};
}

}  // namespace keelson::ctl
