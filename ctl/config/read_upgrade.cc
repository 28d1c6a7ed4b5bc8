// UpgradeConfiguration.
#include "ctl/config/fields.h"
#include "ctl/config/read.h"

namespace keelson::ctl {
namespace {

using component::DocumentReader;

// Fields that sections have in common.
void ReadShared(DocumentReader& in, UpgradeVerbConfiguration& out, std::vector<std::string>& warnings) {
  in.Read("dryRun", out.dry_run);
  in.Read("ignorePreflightErrors", out.ignore_preflight_errors);
  WithoutEffect(in, {"etcdUpgrade"}, "etcd is a package of its own, and starts again with kube-controlplane",
                warnings);
}

void ReadVersions(DocumentReader& in, UpgradeVerbConfiguration& out, std::vector<std::string>& warnings) {
  in.Read("kubernetesVersion", out.version);
  WithoutEffect(in, {"allowExperimentalUpgrades", "allowRCUpgrades"},
                "nodectl upgrades to its own version alone", warnings);
  WithoutEffect(in, {"printConfig"}, "'kubectl -n kube-system get configmap kubeadm-config' shows it",
                warnings);
}

// Of verbs that change the machine.
void ReadChange(DocumentReader& in, UpgradeVerbConfiguration& out, std::vector<std::string>& warnings) {
  in.Read("certificateRenewal", out.renew_certificates);
  in.Read("skipPhases", out.skip_phases);
  ReadPatches(in, out.patches_dir);
  WithoutEffect(in, {"imagePullPolicy", "imagePullSerial"},
                "no image is pulled: daemons are units of systemd", warnings);
}

}  // namespace

Result<UpgradeConfiguration> ReadUpgrade(const ConfigDocuments& documents,
                                         std::vector<std::string>& warnings) {
  UpgradeConfiguration out;
  if (!documents.upgrade) return out;
  component::DocumentProblems problems{.kind = "UpgradeConfiguration"};
  {
    DocumentReader in(*documents.upgrade, problems);
    in.Ignore({"apiVersion", "kind"});
    in.Object("apply", [&](DocumentReader& apply) {
      ReadShared(apply, out.apply, warnings);
      ReadVersions(apply, out.apply, warnings);
      ReadChange(apply, out.apply, warnings);
      apply.Read("forceUpgrade", out.apply.force);
    });
    in.Object("node", [&](DocumentReader& node) {
      ReadShared(node, out.node, warnings);
      ReadChange(node, out.node, warnings);
    });
    in.Object("plan", [&](DocumentReader& plan) {
      ReadShared(plan, out.plan, warnings);
      ReadVersions(plan, out.plan, warnings);
    });
    WithoutEffect(in, {"diff"}, "there are no manifests of static pods to compare", warnings);
    ReadTimeouts(in, out.timeouts);
  }
  KEELSON_RETURN_IF_ERROR(Refuse(problems, "UpgradeConfiguration"));
  return out;
}

}  // namespace keelson::ctl
