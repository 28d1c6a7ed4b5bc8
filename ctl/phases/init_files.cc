// Phases of init that make certificates and kubeconfigs.
#include "ctl/phases/init_run.h"

namespace keelson::ctl::init {

Result<> CertificateCa(InitRun& run) { return run.EnsurePlanned("ca"); }
Result<> CertificateApiServer(InitRun& run) { return run.EnsurePlanned("apiserver"); }
Result<> CertificateKubeletClient(InitRun& run) { return run.EnsurePlanned("apiserver-kubelet-client"); }
Result<> CertificateFrontProxyCa(InitRun& run) { return run.EnsurePlanned("front-proxy-ca"); }
Result<> CertificateFrontProxyClient(InitRun& run) { return run.EnsurePlanned("front-proxy-client"); }
Result<> CertificateEtcdCa(InitRun& run) { return run.EnsurePlannedOfEtcd("etcd/ca"); }
Result<> CertificateEtcdServer(InitRun& run) { return run.EnsurePlannedOfEtcd("etcd/server"); }
Result<> CertificateEtcdPeer(InitRun& run) { return run.EnsurePlannedOfEtcd("etcd/peer"); }
Result<> CertificateEtcdHealthcheckClient(InitRun& run) {
  return run.EnsurePlannedOfEtcd("etcd/healthcheck-client");
}
Result<> CertificateEtcdClient(InitRun& run) { return run.EnsurePlannedOfEtcd("apiserver-etcd-client"); }
Result<> CertificateServiceAccounts(InitRun& run) { return EnsureServiceAccountKey(run.Certificates()); }

Result<> KubeconfigAdmin(InitRun& run) { return run.EnsurePlannedKubeconfig("admin"); }

// An administrator with an external CA need not make it; admin.conf does then.
Result<> KubeconfigSuperAdmin(InitRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, run.Ca());
  if (!ca.key_pem) return {};
  return run.EnsurePlannedKubeconfig("super-admin");
}

Result<> KubeconfigKubelet(InitRun& run) { return run.EnsurePlannedKubeconfig("kubelet"); }
Result<> KubeconfigControllerManager(InitRun& run) {
  return run.EnsurePlannedKubeconfig("controller-manager");
}
Result<> KubeconfigScheduler(InitRun& run) { return run.EnsurePlannedKubeconfig("scheduler"); }

}  // namespace keelson::ctl::init
