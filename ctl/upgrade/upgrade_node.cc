// Phases of an upgrade that change this node.
#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/host/versions.h"
#include "ctl/output.h"
#include "ctl/phases/node_steps.h"
#include "ctl/upgrade/upgrade_run.h"
#include "lib/base/text.h"
#include "lib/base/version.h"

namespace keelson::ctl::upgrade {
namespace {

// The document that the cluster has by now: that of the map, which may be newer than what this run has read.
Result<boost::json::object> ClusterDocument(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, run.Cluster());
  if (run.options().verb == UpgradeOptions::Verb::kNode) return maps->kubelet;
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return KubeletDocument(init->config(), UnitActive(run.host(), "systemd-resolved"));
}

// Empty: the node is Ready, its status is of the installed kubelet, and its units run. Else what is missing.
Result<std::string> WhatIsMissing(UpgradeRun& run, const client::RestClient& api, const std::string& name,
                                  const std::string& kubelet) {
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, run.Cluster());
  std::vector<std::string> units = maps->units;
  units.emplace_back("kubelet");
  for (const std::string& unit : units) {
    if (!UnitActive(run.host(), unit)) {
      return "unit " + unit + " is not active: see 'systemctl status " + unit + "'";
    }
  }
  const auto node = api.Get<corev1::Node>("", name);
  if (!node) return node.error().message();
  const std::string& tells = node->status().node_info().kubelet_version();
  if (tells != kubelet) return "node " + name + " tells the kubelet version " + tells + ", not " + kubelet;
  for (const corev1::NodeCondition& condition : node->status().conditions()) {
    if (condition.type() == "Ready" && condition.status() == "True") return std::string();
  }
  return "node " + name + " is not Ready";
}

}  // namespace

Result<> Drain(UpgradeRun& run) { return run.options().drain ? run.Cordon() : Result<>(); }

Result<> Uncordon(UpgradeRun& run) { return run.Uncordon(); }

Result<> KubeletConfig(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, run.Machine());
  KEELSON_ASSIGN_OR_RETURN(const boost::json::object cluster, ClusterDocument(run));
  const bool resolved = UnitActive(run.host(), "systemd-resolved");
  KEELSON_ASSIGN_OR_RETURN(const KubeletPatches patches,
                           ReadPatches(run.options().patches_dir, run.out(), run.err()));
  KEELSON_ASSIGN_OR_RETURN(
      const boost::json::object document,
      ApplyPatches(WithInstance(FitToMachine(cluster, resolved), machine->instance), patches));
  run.out() << "[upgrade/kubelet-config] Writing kubelet configuration to file \"" << paths::kKubeletConfig
            << "\"\n";
  KEELSON_RETURN_IF_ERROR(run.host().Write(paths::kKubeletConfig, ToYaml(document), 0644));
  run.out() << "[upgrade/kubelet-config] Restarting the kubelet; pods stay\n";
  return RestartUnitAndWait(run.host(), "kubelet");
}

Result<> NodeUnits(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, run.Machine());
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, run.Cluster());
  KEELSON_ASSIGN_OR_RETURN(const Kubeconfig kubelet, ReadAccess(run.host(), paths::kKubeletConf));
  const NodeAccess access{kubelet.server, kubelet.ca_pem, maps->cluster.cluster_name};
  NodeRegistration node;
  node.name = machine->node_name;
  node.cri_socket = machine->cri_socket;
  for (const std::string& unit : maps->units) {
    if (unit == "kube-cni") {
      KEELSON_RETURN_IF_ERROR(StartCni(run.host(), maps->cluster, node, access, run.out()));
    } else if (unit == "kube-proxy") {
      KEELSON_RETURN_IF_ERROR(StartProxy(run.host(), maps->cluster, node, maps->proxy, access, run.out()));
    } else {
      return Error(Code::kInvalid,
                   "the cluster wants a unit on every node that this release does not know: " + unit);
    }
  }
  return maps->optional_units.empty() ? Result<>() : StartCsi(run.host(), node, access, run.out());
}

Result<> PostUpgrade(UpgradeRun& run) {
  if (run.options().dry_run) {
    run.out() << "[dryrun] Finished dryrunning successfully!\n";
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, run.Machine());
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  KEELSON_ASSIGN_OR_RETURN(const std::string kubelet, InstalledVersion(run.host(), "kubelet"));
  const Timeouts& timeouts = run.options().timeouts;
  run.out() << "[upgrade/post-upgrade] Waiting for node " << machine->node_name
            << " to be Ready with kubelet " << kubelet << ". This can take up to " << timeouts.kubelet.count()
            << "s\n";
  std::string missing;
  const auto done = Await(
      "node " + machine->node_name + " to be Ready", timeouts.kubelet,
      [&]() -> Result<bool> {
        KEELSON_ASSIGN_OR_RETURN(missing, WhatIsMissing(run, api, machine->node_name, kubelet));
        return missing.empty();
      },
      run.clock());
  if (!done) return Error(done.error().code(), done.error().message() + ": " + missing);
  if (run.options().verb == UpgradeOptions::Verb::kApply) {
    run.out() << "\n[upgrade/successful] SUCCESS! A control plane node of your cluster was upgraded to \""
              << kGitVersion << "\".\n\n"
              << "[upgrade/kubelet] Now please proceed with upgrading the rest of the nodes by following the "
                 "right order: 'nodectl upgrade node' on each.\n";
  } else {
    run.out() << "[upgrade] The configuration for this node was successfully upgraded!\n";
  }
  return {};
}

}  // namespace keelson::ctl::upgrade
