// Phases of an upgrade that change the control plane and what the cluster keeps of it.
#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/host/versions.h"
#include "ctl/phases/control_plane.h"
#include "ctl/phases/node_steps.h"
#include "ctl/pki/renew.h"
#include "ctl/upgrade/upgrade_run.h"

namespace keelson::ctl::upgrade {
namespace {

Result<> RenewAll(InitRun& init) {
  const CertificateStore store = init.Certificates();
  for (const ManagedCertificate& managed : ManagedCertificates()) {
    const auto renewed = Renew(store, managed, init.config().cluster.certificate_validity);
    // Absent, or signed by a CA whose key is elsewhere: an administrator's matter.
    const bool told =
        !renewed && (renewed.error().Is(Code::kNotFound) || renewed.error().Is(Code::kUnimplemented));
    if (!renewed && !told) return renewed.error();
    init.out() << "[upgrade/control-plane] "
               << (renewed ? "Renewed the " + managed.long_name : renewed.error().message()) << "\n";
  }
  return {};
}

// The server that answers may be one of several, or the one before.
Result<> AwaitVersion(UpgradeRun& run, InitRun& init) {
  if (run.options().dry_run) return {};
  KEELSON_ASSIGN_OR_RETURN(const std::string installed, InstalledVersion(run.host(), "kube-controlplane"));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  std::string last;
  const auto done = Await(
      "the API server to be " + installed, init.config().timeouts.control_plane,
      [&]() -> Result<bool> {
        const auto version = ServerVersion(api);
        last = version ? *version : version.error().message();
        return last == installed;
      },
      run.clock());
  if (!done) return done.error().Wrap("the API server says: " + last);
  run.out() << "[upgrade/control-plane] The API server is " << installed << "\n";
  return {};
}

Result<bool> RunsOnNodes(UpgradeRun& run, const char* unit) {
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, run.Cluster());
  const bool runs = std::find(maps->units.begin(), maps->units.end(), unit) != maps->units.end();
  if (!runs) run.out() << "[upgrade/addon] Nodes of this cluster do not run " << unit << ": left alone\n";
  return runs;
}

}  // namespace

Result<> Backup(UpgradeRun& run) { return run.BackUpOnce(); }

Result<> ControlPlane(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, run.Machine());
  if (!machine->control_plane && run.options().verb == UpgradeOptions::Verb::kNode) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, init->Ca());
  std::string before;
  if (run.host().Exists(paths::kControlPlaneEnv)) {
    KEELSON_ASSIGN_OR_RETURN(before, run.host().Read(paths::kControlPlaneEnv));
  }
  KEELSON_ASSIGN_OR_RETURN(
      const std::string text,
      ControlPlaneEnvironment(init->config(), ca.key_pem.has_value(), EtcdClusterIn(before)));
  if (run.options().renew_certificates) KEELSON_RETURN_IF_ERROR(RenewAll(*init));
  run.out() << "[upgrade/control-plane] Writing the flags of kube-controlplane to \""
            << paths::kControlPlaneEnv << "\"\n";
  KEELSON_RETURN_IF_ERROR(run.host().Write(paths::kControlPlaneEnv, text, 0644));
  run.out()
      << "[upgrade/control-plane] Restarting kube-controlplane; it is ready when its etcd is. This can take "
         "minutes\n";
  KEELSON_RETURN_IF_ERROR(RestartControlPlane(*init));
  KEELSON_RETURN_IF_ERROR(init::WaitControlPlane(*init));
  return AwaitVersion(run, *init);
}

Result<> UploadKubeadmConfig(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return init::UploadKubeadmConfig(*init);
}

Result<> UploadKubeletConfig(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return init::UploadKubeletConfig(*init);
}

Result<> BootstrapToken(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return init::BootstrapTokens(*init);
}

Result<> AddonDns(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  const auto service = api.Get<corev1::Service>("kube-system", "kube-dns");
  if (!service && !service.error().Is(Code::kNotFound)) return service.error();
  if (service) return init::AddonDns(*init);
  run.out() << "[upgrade/addon] There is no Service kube-system/kube-dns: left alone\n";
  return {};
}

Result<> AddonProxy(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const bool runs, RunsOnNodes(run, "kube-proxy"));
  if (!runs) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return init::AddonProxy(*init);
}

Result<> AddonCni(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const bool runs, RunsOnNodes(run, "kube-cni"));
  if (!runs) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return init::AddonCni(*init);
}

Result<> AddonCsi(UpgradeRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, run.Cluster());
  if (maps->optional_units.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * init, run.Init());
  return init::WriteCsi(*init);
}

}  // namespace keelson::ctl::upgrade
