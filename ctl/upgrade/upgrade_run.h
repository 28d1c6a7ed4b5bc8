// One run of `nodectl upgrade apply` or `nodectl upgrade node`: what its phases share. Programs are replaced by packages
// before; a run checks them, backs up, and writes what the new release writes.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ctl/host/host.h"
#include "ctl/phases/cluster_maps.h"
#include "ctl/phases/init_run.h"
#include "ctl/upgrade/drain.h"
#include "ctl/upgrade/look.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

struct UpgradeOptions {
  enum class Verb { kApply, kNode } verb = Verb::kApply;
  std::string version;     // that the caller asks for; empty: nodectl's own
  std::string kubeconfig;  // empty: admin.conf of this machine, or else kubelet.conf
  std::vector<std::string> ignored_checks, skip_phases;  // checks in lower case
  std::string patches_dir;                               // as of init
  Timeouts timeouts;
  bool renew_certificates = true, dry_run = false, force = false;
  std::function<bool()> agrees;  // asked once the checks have passed; null: the caller has agreed
  bool drain = false;
  DrainOptions drain_options;
  PhaseLog* log = nullptr;  // of phases; null: none. Outlives the run
};

class UpgradeRun {
 public:
  // References outlive the run.
  UpgradeRun(Host& host, UpgradeOptions options, std::ostream& out, std::ostream& err,
             Clock& clock = Clock::Real());

  // All phases, or `only` one. A run of all phases leaves a mark on the machine until it has ended: the next one goes on
  // with its backup and knows whether the node was cordoned by it.
  Result<> Run(const std::string& only);

  // ---- for phases ----

  Host& host() { return host_; }
  const UpgradeOptions& options() const { return options_; }
  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }
  Clock& clock() { return clock_; }
  PhaseLog* log() { return options_.log; }
  // Read at the first call; waits for an API server that an earlier run has just restarted.
  Result<client::RestClient> Api();
  Result<const ClusterMaps*> Cluster();
  Result<const MachineSetup*> Machine();
  // A run of init with the configuration that the cluster and this machine have. kInvalid: no control plane is here.
  Result<InitRun*> Init();
  Result<> BackUpOnce();
  // Cordons the node, and remembers whether it was this run that did.
  Result<> Cordon();
  Result<> Uncordon();

 private:
  Result<> ReadMark();
  Result<> WriteMark();
  Result<> RunAll();

  Host& host_;
  const UpgradeOptions options_;
  std::ostream& out_;
  std::ostream& err_;
  Clock& clock_;
  bool marks_ = false;
  std::string backup_;     // of the mark; empty: none was begun
  bool cordoned_ = false;  // of the mark
  std::optional<client::RestClient> api_;
  std::optional<ClusterMaps> cluster_;
  std::optional<MachineSetup> machine_;
  std::optional<InitRun> init_;
};

std::string DescribeApplyPhases();
std::string DescribeNodePhases();

// Phases, in the files upgrade_checks.cc, upgrade_cluster.cc and upgrade_node.cc.
namespace upgrade {
Result<> PreflightApply(UpgradeRun& run);
Result<> PreflightNode(UpgradeRun& run);
Result<> Backup(UpgradeRun& run);
Result<> ControlPlane(UpgradeRun& run);
Result<> UploadKubeadmConfig(UpgradeRun& run);
Result<> UploadKubeletConfig(UpgradeRun& run);
Result<> BootstrapToken(UpgradeRun& run);
Result<> AddonDns(UpgradeRun& run);
Result<> AddonProxy(UpgradeRun& run);
Result<> AddonCni(UpgradeRun& run);
Result<> AddonCsi(UpgradeRun& run);
Result<> Drain(UpgradeRun& run);
Result<> KubeletConfig(UpgradeRun& run);
Result<> NodeUnits(UpgradeRun& run);
Result<> PostUpgrade(UpgradeRun& run);
Result<> Uncordon(UpgradeRun& run);
}  // namespace upgrade

}  // namespace keelson::ctl
