// Phases of init that write to the cluster.
#include "ctl/cluster/apply.h"
#include "ctl/cluster/copy_certs.h"
#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/etcd/settings.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/phases/init_run.h"
#include "ctl/phases/join_command.h"
#include "ctl/token/discovery.h"

namespace keelson::ctl {

std::string JoinCommand(const std::string& endpoint, const std::string& token, const std::string& pin,
                        bool one_line, const std::string& certificate_key) {
  const std::string gap = one_line ? " " : " \\\n\t";
  std::string out =
      "nodectl join " + endpoint + " --token " + token + gap + "--discovery-token-ca-cert-hash " + pin;
  if (!certificate_key.empty()) out += gap + "--control-plane --certificate-key " + certificate_key;
  return out;
}

namespace init {
namespace {

// Secrets of tokens are written by their type, since their values are bytes.
Result<> WriteToken(InitRun& run, const BootstrapToken& token) {
  KEELSON_ASSIGN_OR_RETURN(const corev1::Secret secret, TokenSecret(token, run.clock().Now()));
  if (run.config().dry_run) {
    run.out() << "[dryrun] Would write Secret \"kube-system/" << secret.metadata().name() << "\"\n";
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  const auto created = api.Create(secret);
  if (created) return {};
  if (!created.error().Is(Code::kAlreadyExists)) return created.error().Wrap("write bootstrap token");
  const auto updated = client::UpdateWithRetry<corev1::Secret>(
      api, "kube-system", secret.metadata().name(), "", [&](corev1::Secret& present) -> Result<bool> {
        *present.mutable_data() = secret.data();
        return true;
      });
  if (!updated) return updated.error().Wrap("write bootstrap token");
  return {};
}

Result<std::string> ClusterInfo(InitRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, run.Ca());
  KEELSON_ASSIGN_OR_RETURN(const std::string endpoint, ApiEndpoint(run.config()));
  Kubeconfig out;
  out.server = "https://" + endpoint;
  out.ca_pem = ca.certificate_pem;
  return KubeconfigText(out);
}

}  // namespace

Result<> UploadKubeadmConfig(InitRun& run) {
  run.out() << "[upload-config] Storing the configuration used in ConfigMap \"kubeadm-config\" in the "
               "\"kube-system\" "
               "Namespace\n";
  KEELSON_RETURN_IF_ERROR(run.Write(KubeadmConfigObjects(run.config().cluster)));
  if (!run.config().cluster.stacks_etcd()) return {};
  WantedObjects endpoints = EtcdEndpointsObjects({EtcdUrl(run.config().advertise_address, kEtcdClientPort)});
  // Machines that have joined since have written all of them.
  for (WantedObject& object : endpoints) object.existing = WantedObject::Existing::kKept;
  return run.Write(endpoints);
}

Result<> UploadKubeletConfig(InitRun& run) {
  run.out() << "[kubelet] Creating a ConfigMap \"kubelet-config\" in namespace kube-system with the "
               "configuration for the "
               "kubelets in the cluster\n";
  const bool resolved = UnitActive(run.host(), "systemd-resolved");
  KEELSON_ASSIGN_OR_RETURN(const boost::json::object document, KubeletDocument(run.config(), resolved));
  return run.Write(KubeletConfigObjects(document, run.config().kubelet.empty()));
}

Result<> BootstrapTokens(InitRun& run) {
  run.out() << "[bootstrap-token] Configuring bootstrap tokens, cluster-info ConfigMap, RBAC Roles\n";
  for (const BootstrapToken& token : run.config().bootstrap_tokens) {
    if (!run.options().skip_token_print) {
      run.out() << "[bootstrap-token] Using token: " << token.token << "\n";
    }
    KEELSON_RETURN_IF_ERROR(WriteToken(run, token));
  }
  KEELSON_RETURN_IF_ERROR(run.Write(BootstrapObjects()));
  run.out() << "[bootstrap-token] Creating the \"cluster-info\" ConfigMap in the \"kube-public\" namespace\n";
  KEELSON_ASSIGN_OR_RETURN(const std::string info, ClusterInfo(run));
  return run.Write(ClusterInfoObjects(info));
}

Result<> ShowJoinCommand(InitRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, run.Ca());
  KEELSON_ASSIGN_OR_RETURN(const std::string pin, PinOf(ca.certificate_pem));
  KEELSON_ASSIGN_OR_RETURN(const std::string endpoint, ApiEndpoint(run.config()));
  const std::string token =
      run.options().skip_token_print ? "<value withheld>" : run.config().bootstrap_tokens.at(0).token;
  run.out() << "\nYour Kubernetes control-plane has initialized successfully!\n\n"
               "To start using your cluster, you need to run the following as a regular user:\n\n"
               "  mkdir -p $HOME/.kube\n"
               "  sudo cp -i "
            << paths::kAdminConf
            << " $HOME/.kube/config\n"
               "  sudo chown $(id -u):$(id -g) $HOME/.kube/config\n\n";
  if (run.options().upload_certs) {
    const std::string key =
        run.options().skip_certificate_key_print ? "<value withheld>" : run.config().certificate_key;
    run.out()
        << "You can now join any number of control-plane nodes running the following command on each as "
           "root:\n\n"
        << JoinCommand(endpoint, token, pin, false, key)
        << "\n\nPlease note that the certificate-key gives access to cluster sensitive data, keep it "
           "secret!\n"
           "As a safeguard, uploaded-certs will be deleted in two hours; If necessary, you can use\n"
           "\"nodectl init phase upload-certs --upload-certs\" to reload certs afterward.\n\n";
  }
  run.out() << "Then you can join any number of worker nodes by running the following on each as root:\n\n"
            << JoinCommand(endpoint, token, pin, false) << "\n";
  return {};
}

}  // namespace init
}  // namespace keelson::ctl
