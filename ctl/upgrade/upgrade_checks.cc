// What an upgrade checks before it changes anything.
#include <algorithm>

#include "ctl/host/paths.h"
#include "ctl/host/versions.h"
#include "ctl/preflight/check.h"
#include "ctl/upgrade/upgrade_run.h"
#include "lib/base/text.h"
#include "lib/base/version.h"

namespace keelson::ctl::upgrade {
namespace {

// kubeadm's check of the same name, with its words.
Check ControlPlaneNodesReadyCheck(const ClusterVersions& running) {
  return {"ControlPlaneNodesReady", [&running](const Host&) {
            Findings out;
            std::vector<std::string> not_ready;
            for (const NodeVersion& node : running.nodes) {
              if (node.control_plane && !node.ready) not_ready.push_back(node.name);
            }
            if (!not_ready.empty()) {
              out.errors.push_back("there are NotReady control-planes in the cluster: [" +
                                   Join(not_ready, " ") + "]");
            }
            return out;
          }};
}

// Programs are the packages' matter: nodectl names the package, and changes nothing until it is there.
Check PackagesCheck(const InstalledPrograms& installed, const std::string& target) {
  return {"Packages", [&installed, &target](const Host&) {
            Findings out;
            std::vector<std::string> packages;
            for (const auto& [program, version] : installed.versions) {
              if (*ParseVersion(version) < *ParseVersion(target)) {
                const std::string& own = installed.package_version;
                packages.push_back(PackageOf(program) + (own.empty() ? "" : "=" + own));
                out.errors.push_back("the installed " + program + " is " + version +
                                     ", older than nodectl (" + target + ")");
              } else if (*ParseVersion(version) > *ParseVersion(target)) {
                out.errors.push_back("the installed " + program + " is " + version +
                                     ", newer than nodectl (" + target +
                                     "): install the package keelson-nodectl of its version");
              }
            }
            if (!packages.empty()) {
              out.errors.push_back("install what is missing: " + InstallCommand(packages) +
                                   ", then run this command again");
            }
            return out;
          }};
}

Result<> EnforceSkew(UpgradeRun& run, const ClusterVersions& running, const std::string& target) {
  const SkewErrors skew = CheckUpgradeSkew(running, target);
  if (!skew.mandatory.empty()) {
    return Error(Code::kInvalid,
                 "the --version argument is invalid due to these fatal errors:\n\n\t- " +
                     Join(skew.mandatory, "\n\t- ") +
                     "\n\nPlease fix the misalignments highlighted above and try upgrading again");
  }
  if (skew.skippable.empty()) return {};
  const std::string list = "\n\n\t- " + Join(skew.skippable, "\n\t- ") + "\n\n";
  if (!run.options().force) {
    return Error(Code::kInvalid, "the --version argument is invalid due to these errors:" + list +
                                     "Can be bypassed if you pass the --force flag");
  }
  run.out() << "[upgrade/versions] Found " << skew.skippable.size()
            << " potential version compatibility errors but skipping since the --force flag is set:" << list;
  return {};
}

}  // namespace

Result<> PreflightApply(UpgradeRun& run) {
  run.out() << "[preflight] Running pre-flight checks.\n";
  const std::vector<std::string>& ignored = run.options().ignored_checks;
  KEELSON_RETURN_IF_ERROR(RunChecks({PrivilegedUserCheck()}, run.host(), ignored, run.err()));
  const std::string target = kGitVersion;
  std::string wanted = run.options().version.empty() ? target : run.options().version;
  if (!wanted.starts_with('v')) wanted = "v" + wanted;
  if (wanted != target) {
    return Error(Code::kInvalid, "Specified version to upgrade to \"" + wanted + "\" is not nodectl's (" +
                                     target +
                                     "): nodectl writes what its own release needs. Install the package "
                                     "keelson-nodectl of that version first");
  }
  KEELSON_RETURN_IF_ERROR(run.Init());  // this machine has a control plane, and its configuration can be read
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  KEELSON_ASSIGN_OR_RETURN(const ClusterVersions running, LookAtVersions(api));
  run.out() << "[upgrade/versions] Cluster version: " << running.configured << "\n"
            << "[upgrade/versions] API server version: " << running.server << "\n"
            << "[upgrade/versions] nodectl version: " << target << "\n";
  KEELSON_RETURN_IF_ERROR(EnforceSkew(run, running, target));
  const InstalledPrograms installed = LookAtPrograms(run.host());
  return RunChecks({ControlPlaneNodesReadyCheck(running), PackagesCheck(installed, target)}, run.host(),
                   ignored, run.err());
}

Result<> PreflightNode(UpgradeRun& run) {
  run.out() << "[preflight] Running pre-flight checks\n";
  const std::vector<std::string>& ignored = run.options().ignored_checks;
  KEELSON_RETURN_IF_ERROR(RunChecks({PrivilegedUserCheck()}, run.host(), ignored, run.err()));
  KEELSON_RETURN_IF_ERROR(run.Machine());
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, run.Cluster());
  ClusterVersions running;
  KEELSON_ASSIGN_OR_RETURN(running.server, ServerVersion(api));
  running.configured = maps->cluster.kubernetes_version;
  KEELSON_ASSIGN_OR_RETURN(const std::string kubelet, InstalledVersion(run.host(), "kubelet"));
  run.out() << "[upgrade/versions] API server version: " << running.server << "\n"
            << "[upgrade/versions] kubelet version: " << kubelet << "\n";
  KEELSON_RETURN_IF_ERROR(CheckNodeSkew(running, kubelet, kGitVersion));
  const std::string target = kGitVersion;
  const InstalledPrograms installed = LookAtPrograms(run.host());
  return RunChecks({PackagesCheck(installed, target)}, run.host(), ignored, run.err());
}

}  // namespace keelson::ctl::upgrade
