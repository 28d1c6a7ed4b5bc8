// Phases of join that make a machine part of the control plane. They do nothing on a worker.
#include "ctl/phases/join_control_plane.h"

#include "ctl/cluster/copy_certs.h"
#include "ctl/config/complete.h"
#include "ctl/preflight/check.h"
#include "ctl/token/discovery.h"
#include "lib/base/text.h"

namespace keelson::ctl::join {
namespace {

bool IsKey(const std::string& path) { return path.ends_with(".key"); }

// Certificates that came on another way than the Secret.
Result<> RequireSharedFiles(const Host& host, const ClusterConfiguration& cluster) {
  for (const SharedFile& file : SharedFiles(cluster)) {
    // An external CA's key is elsewhere.
    const bool needed = !file.path.empty() && (!IsKey(file.path) || file.key == "sa.key");
    if (!needed || host.Exists(file.path)) continue;
    return Error(Code::kInvalid,
                 "failure loading " + file.path +
                     ": it does not exist; --certificate-key downloads what the cluster has uploaded");
  }
  return {};
}

Error NotReady(const Error& why) {
  return Error(Code::kInvalid,
               "One or more conditions for hosting a new control plane instance is not satisfied.\n\n" +
                   why.message() +
                   "\n\nPlease ensure that:\n* The cluster has a stable controlPlaneEndpoint address.\n* The "
                   "certificates that must be shared among control plane instances are provided.\n");
}

}  // namespace

Result<> CheckControlPlane(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(const JoinedCluster* joined, run.Cluster());
  if (joined->cluster.control_plane_endpoint.empty()) {
    return NotReady(
        Error(Code::kInvalid,
              "unable to add a new control plane instance to a cluster that doesn't have a stable "
              "controlPlaneEndpoint address"));
  }
  if (run.config().control_plane->certificate_key.empty() && !run.resumes()) {
    if (auto there = RequireSharedFiles(run.host(), joined->cluster); !there) return NotReady(there.error());
  }
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  run.out() << "[preflight] Running pre-flight checks before initializing the new control plane instance\n";
  return RunChecks(ControlPlaneChecks(plane->config(), run.resumes(), plane->static_pod()), run.host(),
                   run.options().ignored_checks, run.err());
}

Result<> DownloadCerts(JoinRun& run) {
  if (!run.config().control_plane || run.config().control_plane->certificate_key.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(const std::string key,
                           DecodeCertificateKey(run.config().control_plane->certificate_key));
  run.out() << "[download-certs] Downloading the certificates in Secret \"" << kCertsSecret
            << "\" in the \"kube-system\" Namespace\n";
  KEELSON_ASSIGN_OR_RETURN(const JoinedCluster* joined, run.Cluster());
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api,
                           ClientFor(joined->access, run.config().timeouts.api_call));
  const auto secret = api.Get<corev1::Secret>("kube-system", kCertsSecret);
  if (!secret && secret.error().Is(Code::kNotFound)) {
    return Error(
        Code::kNotFound,
        "error downloading the secret: Secret \"kubeadm-certs\" was not found in the \"kube-system\" "
        "Namespace. This Secret might have expired. Please, run `nodectl init phase upload-certs "
        "--upload-certs` on a control plane to generate a new one");
  }
  if (!secret) return secret.error().Wrap("error downloading the secret");
  // All of them are opened before the first one is written.
  std::vector<std::pair<std::string, std::string>> files;
  for (const SharedFile& file : SharedFiles(joined->cluster)) {
    const auto sealed = secret->data().find(file.key);
    if (sealed == secret->data().end()) {
      return Error(Code::kInvalid, "the Secret does not include the required certificate or key - name: " +
                                       file.key + ", path: " + file.path);
    }
    if (sealed->second.empty()) continue;
    KEELSON_ASSIGN_OR_RETURN(std::string text, OpenFileText(key, sealed->second));
    files.emplace_back(file.path, std::move(text));
  }
  for (const auto& [path, text] : files) {
    KEELSON_RETURN_IF_ERROR(run.host().Write(path, text, IsKey(path) ? 0600 : 0644));
  }
  return {};
}

Result<> Certificates(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  // What is missing would be made anew, and belong to another cluster.
  KEELSON_RETURN_IF_ERROR(RequireSharedFiles(run.host(), plane->config().cluster));
  for (const auto& make :
       {init::CertificateCa, init::CertificateApiServer, init::CertificateKubeletClient,
        init::CertificateFrontProxyCa, init::CertificateFrontProxyClient, init::CertificateEtcdCa,
        init::CertificateEtcdServer, init::CertificateEtcdPeer, init::CertificateEtcdHealthcheckClient,
        init::CertificateEtcdClient, init::CertificateServiceAccounts}) {
    KEELSON_RETURN_IF_ERROR(make(*plane));
  }
  return {};
}

Result<> Kubeconfigs(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  for (const auto& make :
       {init::KubeconfigAdmin, init::KubeconfigControllerManager, init::KubeconfigScheduler}) {
    KEELSON_RETURN_IF_ERROR(make(*plane));
  }
  return {};
}

Result<> StartControlPlane(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  // With stacked etcd the phase etcd-join starts it, after adding the new member.
  return plane->config().cluster.stacks_etcd() ? Result<>() : init::ControlPlane(*plane);
}

Result<> MarkControlPlane(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  return init::MarkControlPlane(*plane);
}

Result<> WaitControlPlane(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  return init::WaitControlPlane(*plane);
}

}  // namespace keelson::ctl::join
