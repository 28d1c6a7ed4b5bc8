#include "ctl/upgrade/upgrade_run.h"

#include "ctl/host/paths.h"
#include "ctl/phases/node_steps.h"
#include "ctl/token/discovery.h"
#include "ctl/upgrade/backup.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

using Verb = UpgradeOptions::Verb;

constexpr Phase<UpgradeRun> kApplyPhases[] = {
    {"preflight", "Check the cluster, versions and this machine's packages", upgrade::PreflightApply},
    {"backup", "Copy certificates, kubeconfigs, settings and etcd's data", upgrade::Backup},
    {"control-plane", "Renew certificates, write flags and restart kube-controlplane", upgrade::ControlPlane},
    {"upload-config/kubeadm", "Write the ConfigMap kubeadm-config", upgrade::UploadKubeadmConfig},
    {"upload-config/kubelet", "Write the ConfigMap kubelet-config", upgrade::UploadKubeletConfig},
    {"kubelet-config", "Write this node's kubelet configuration and restart the kubelet",
     upgrade::KubeletConfig},
    {"bootstrap-token", "Write the rights of nodes that join and the ConfigMap cluster-info",
     upgrade::BootstrapToken},
    {"addon/coredns", "Write the Service of the cluster's DNS, where there is one", upgrade::AddonDns},
    {"addon/kube-proxy", "Write kube-proxy's rights and settings, where nodes run it", upgrade::AddonProxy},
    {"addon/kube-cni", "Write kube-cni's rights and settings, where nodes run it", upgrade::AddonCni},
    {"addon/csi", "Write the CSI driver's rights and settings, where the cluster has it", upgrade::AddonCsi},
    {"post-upgrade", "Wait until this node is Ready with the new kubelet", upgrade::PostUpgrade},
};

constexpr Phase<UpgradeRun> kNodePhases[] = {
    {"preflight", "Check versions and this machine's packages", upgrade::PreflightNode},
    {"backup", "Copy kubeconfigs and settings", upgrade::Backup},
    {"drain", "With --drain: cordon the node and evict its pods", upgrade::Drain},
    {"control-plane", "Where this machine has one: as in 'upgrade apply'", upgrade::ControlPlane},
    {"kubelet-config", "Write the kubelet's configuration and restart the kubelet", upgrade::KubeletConfig},
    {"node-units", "Write the settings of kube-cni, kube-proxy and CSI and restart them", upgrade::NodeUnits},
    {"post-upgrade", "Wait until this node is Ready with the new kubelet", upgrade::PostUpgrade},
    {"uncordon", "With --drain: let pods come again", upgrade::Uncordon},
};

template <size_t N>
std::vector<std::string_view> NamesOf(const Phase<UpgradeRun> (&table)[N]) {
  std::vector<std::string_view> out;
  for (const Phase<UpgradeRun>& phase : table) out.push_back(phase.name);
  return out;
}

}  // namespace

std::string DescribeApplyPhases() { return DescribePhases(kApplyPhases); }
std::string DescribeNodePhases() { return DescribePhases(kNodePhases); }

UpgradeRun::UpgradeRun(Host& host, UpgradeOptions options, std::ostream& out, std::ostream& err, Clock& clock)
    : host_(host), options_(std::move(options)), out_(out), err_(err), clock_(clock) {}

Result<> UpgradeRun::Run(const std::string& only) {
  KEELSON_RETURN_IF_ERROR(ReadMark());
  const bool apply = options_.verb == Verb::kApply;
  const std::vector<std::string_view> names = apply ? NamesOf(kApplyPhases) : NamesOf(kNodePhases);
  // A wrong name changes nothing.
  KEELSON_RETURN_IF_ERROR(SelectPhases(names, only, options_.skip_phases));
  if (only.empty()) return RunAll();
  return apply ? RunPhases(kApplyPhases, only, options_.skip_phases, *this)
               : RunPhases(kNodePhases, only, options_.skip_phases, *this);
}

Result<> UpgradeRun::RunAll() {
  const bool apply = options_.verb == Verb::kApply;
  const std::vector<std::string_view> names = apply ? NamesOf(kApplyPhases) : NamesOf(kNodePhases);
  // The checks come before the mark: a machine that fails them is as it was.
  if (SelectPhases(names, "preflight", options_.skip_phases)->size() == 1) {
    KEELSON_RETURN_IF_ERROR(RunPhase(apply ? kApplyPhases[0] : kNodePhases[0], *this));
  }
  if (options_.agrees && !options_.agrees()) {
    return Error(Code::kCancelled, "won't proceed; the user didn't answer (Y|y) in order to continue");
  }
  marks_ = true;
  KEELSON_RETURN_IF_ERROR(WriteMark());
  std::vector<std::string> skipped = options_.skip_phases;
  skipped.emplace_back("preflight");
  KEELSON_RETURN_IF_ERROR(apply ? RunPhases(kApplyPhases, "", skipped, *this)
                                : RunPhases(kNodePhases, "", skipped, *this));
  return host_.Remove(paths::kUnfinished);
}

// "upgrade-apply" or "upgrade-node", then "backup=DIRECTORY" and "cordoned" where they apply.
Result<> UpgradeRun::ReadMark() {
  if (!host_.Exists(paths::kUnfinished)) return {};
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host_.Read(paths::kUnfinished));
  const std::vector<std::string_view> words = SplitWords(text);
  if (words.empty() || words[0] != (options_.verb == Verb::kApply ? "upgrade-apply" : "upgrade-node")) {
    return Error(Code::kInvalid,
                 std::string(paths::kUnfinished) +
                     " is of another verb, which has not ended: run that again, or remove the "
                     "file when it is not to be finished");
  }
  constexpr std::string_view kBackup = "backup=";
  for (std::string_view word : words) {
    if (word.starts_with(kBackup)) backup_ = word.substr(kBackup.size());
    if (word == "cordoned") cordoned_ = true;
  }
  return {};
}

Result<> UpgradeRun::WriteMark() {
  if (!marks_) return {};
  std::string text = options_.verb == Verb::kApply ? "upgrade-apply\n" : "upgrade-node\n";
  if (!backup_.empty()) text += "backup=" + backup_ + "\n";
  if (cordoned_) text += "cordoned\n";
  return host_.Write(paths::kUnfinished, text, 0600);
}

Result<client::RestClient> UpgradeRun::Api() {
  if (api_) return *api_;
  std::string path = options_.kubeconfig;
  if (path.empty()) path = host_.Exists(paths::kAdminConf) ? paths::kAdminConf : paths::kKubeletConf;
  KEELSON_ASSIGN_OR_RETURN(const Kubeconfig access, ReadAccess(host_, path));
  const Timeouts& timeouts = options_.timeouts;
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ClientFor(access, timeouts.api_call));
  std::string why;
  const auto reached = Await(
      "the API server at " + access.server, timeouts.api_call,
      [&]() -> Result<bool> {
        const auto version = ServerVersion(api);
        if (version) return true;
        why = version.error().message();
        if (version.error().Is(Code::kUnavailable) || version.error().Is(Code::kTimeout)) return false;
        return version.error();
      },
      clock_);
  if (!reached) {
    return reached.error().Is(Code::kTimeout) ? Error(Code::kTimeout, reached.error().message() + ": " + why)
                                              : reached.error();
  }
  api_ = std::move(api);
  return *api_;
}

Result<const ClusterMaps*> UpgradeRun::Cluster() {
  if (!cluster_) {
    KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, Api());
    KEELSON_ASSIGN_OR_RETURN(cluster_, ReadClusterMaps(api));
  }
  return &*cluster_;
}

Result<const MachineSetup*> UpgradeRun::Machine() {
  if (!machine_) {
    KEELSON_ASSIGN_OR_RETURN(machine_, LookAtSetup(host_));
  }
  return &*machine_;
}

Result<InitRun*> UpgradeRun::Init() {
  if (init_) return &*init_;
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, Machine());
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, Cluster());
  KEELSON_ASSIGN_OR_RETURN(InitConfiguration config, RunningConfiguration(*maps, *machine));
  config.dry_run = options_.dry_run;
  config.timeouts = options_.timeouts;
  init_.emplace(host_, std::move(config), InitOptions{{}, true, false, false, machine->node_name}, out_, err_,
                clock_);
  return &*init_;
}

Result<> UpgradeRun::BackUpOnce() {
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, Machine());
  std::optional<ClusterConfiguration> cluster;
  if (machine->control_plane) {
    KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, Cluster());
    cluster = maps->cluster;
  }
  if (backup_.empty()) {
    backup_ = BackupDirectory(clock_.Now());
    KEELSON_RETURN_IF_ERROR(WriteMark());
  }
  return BackUp(host_, PlanBackup(backup_, cluster, host_), out_);
}

Result<> UpgradeRun::Cordon() {
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, Machine());
  if (options_.dry_run) {
    out_ << "[dryrun] Would cordon node \"" << machine->node_name << "\" and evict its pods\n";
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, Api());
  KEELSON_ASSIGN_OR_RETURN(const corev1::Node node, api.Get<corev1::Node>("", machine->node_name));
  if (!node.spec().unschedulable()) {
    // The mark before the deed: a run after a kill uncordons what this one has cordoned.
    cordoned_ = true;
    KEELSON_RETURN_IF_ERROR(WriteMark());
  }
  out_ << "[upgrade/drain] Cordoning node " << machine->node_name << "\n";
  KEELSON_RETURN_IF_ERROR(SetUnschedulable(api, machine->node_name, true));
  return EvictPods(api, machine->node_name, options_.drain_options, out_, clock_);
}

Result<> UpgradeRun::Uncordon() {
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, Machine());
  if (marks_ && !cordoned_) {
    if (options_.drain && !options_.dry_run) {
      out_ << "[upgrade/uncordon] Node " << machine->node_name << " was cordoned before, and stays so\n";
    }
    return {};
  }
  if (options_.dry_run) return {};
  out_ << "[upgrade/uncordon] Uncordoning node " << machine->node_name << "\n";
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, Api());
  KEELSON_RETURN_IF_ERROR(SetUnschedulable(api, machine->node_name, false));
  return {};
}

}  // namespace keelson::ctl
