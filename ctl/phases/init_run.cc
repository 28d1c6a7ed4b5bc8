#include "ctl/phases/init_run.h"

#include "ctl/cluster/apply.h"
#include "ctl/cluster/copy_certs.h"
#include "ctl/host/paths.h"
#include "ctl/phases/control_plane.h"
#include "ctl/token/discovery.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr std::string_view kMark = "init";

constexpr Phase<InitRun> kPhases[] = {
    {"preflight", "Run pre-flight checks", init::Preflight},
    {"certs/ca", "Generate the self-signed Kubernetes CA", init::CertificateCa},
    {"certs/apiserver", "Generate the certificate for serving the Kubernetes API",
     init::CertificateApiServer},
    {"certs/apiserver-kubelet-client", "Generate the certificate for the API server to connect to kubelets",
     init::CertificateKubeletClient},
    {"certs/front-proxy-ca", "Generate the self-signed CA of front proxies", init::CertificateFrontProxyCa},
    {"certs/front-proxy-client", "Generate the certificate for the front proxy client",
     init::CertificateFrontProxyClient},
    {"certs/etcd-ca", "Generate the self-signed CA of etcd", init::CertificateEtcdCa},
    {"certs/etcd-server", "Generate the certificate for serving etcd", init::CertificateEtcdServer},
    {"certs/etcd-peer", "Generate the certificate for etcd's members to communicate with each other",
     init::CertificateEtcdPeer},
    {"certs/etcd-healthcheck-client", "Generate the certificate that nodectl connects to etcd with",
     init::CertificateEtcdHealthcheckClient},
    {"certs/apiserver-etcd-client", "Generate the certificate the API server uses to access etcd",
     init::CertificateEtcdClient},
    {"certs/sa", "Generate the keys that sign ServiceAccount tokens", init::CertificateServiceAccounts},
    {"kubeconfig/admin", "Generate the kubeconfig of the administrator", init::KubeconfigAdmin},
    {"kubeconfig/super-admin", "Generate the kubeconfig that passes authorization",
     init::KubeconfigSuperAdmin},
    {"kubeconfig/kubelet", "Generate the kubeconfig of this node's kubelet", init::KubeconfigKubelet},
    {"kubeconfig/controller-manager", "Generate the kubeconfig of controllers in a process of their own",
     init::KubeconfigControllerManager},
    {"kubeconfig/scheduler", "Generate the kubeconfig of a scheduler in a process of its own",
     init::KubeconfigScheduler},
    {"etcd/local", "Make sure that the control plane can start an etcd of its own", init::EtcdLocal},
    {"control-plane", "Write the flags of kube-controlplane and start it", init::ControlPlane},
    {"kubelet-start", "Write the settings of the kubelet and start it", init::KubeletStart},
    {"wait-control-plane", "Wait for the API server to be ready", init::WaitControlPlane},
    {"upload-config/kubeadm", "Write the ConfigMap kubeadm-config", init::UploadKubeadmConfig},
    {"upload-config/kubelet", "Write the ConfigMap kubelet-config", init::UploadKubeletConfig},
    {"upload-certs", "With --upload-certs: write the shared certificates to Secret kubeadm-certs, encrypted",
     init::UploadCerts},
    {"mark-control-plane", "Label and taint the node of the control plane", init::MarkControlPlane},
    {"bootstrap-token", "Write tokens, their rights and the ConfigMap cluster-info", init::BootstrapTokens},
    {"kubelet-finalize/enable-client-cert-rotation", "Let kubelet.conf follow the rotated certificate",
     init::FinalizeKubelet},
    {"addon/coredns", "Write the Service of the cluster's DNS, which kube-proxy answers", init::AddonDns},
    {"addon/kube-proxy", "Write kube-proxy's rights and settings, and start it", init::AddonProxy},
    {"addon/kube-cni", "Write kube-cni's rights and settings, and start it", init::AddonCni},
    {"addon/csi",
     "Where the packages of CSI are installed: write the driver, its class and rights, and start it",
     init::AddonCsi},
    {"show-join-command", "Print how nodes join", init::ShowJoinCommand},
};

}  // namespace

std::string DescribeInitPhases() { return DescribePhases(kPhases); }

InitRun::InitRun(Host& host, InitConfiguration config, InitOptions options, std::ostream& out,
                 std::ostream& err, Clock& clock)
    : host_(host),
      config_(std::move(config)),
      options_(std::move(options)),
      out_(out),
      err_(err),
      clock_(clock) {}

Result<> InitRun::Run(const std::string& only) {
  KEELSON_RETURN_IF_ERROR(ReadMark());
  marks_ = only.empty();
  for (BootstrapToken& token : config_.bootstrap_tokens) {
    if (token.token.empty()) token.token = NewToken();
  }
  if (options_.upload_certs && config_.certificate_key.empty()) config_.certificate_key = NewCertificateKey();
  // A wrong name changes nothing.
  std::vector<std::string_view> names;
  for (const Phase<InitRun>& phase : kPhases) names.push_back(phase.name);
  KEELSON_RETURN_IF_ERROR(SelectPhases(names, only, config_.skip_phases));
  if (!marks_) return RunPhases(kPhases, only, config_.skip_phases, *this);
  // The checks come before the mark: a machine that fails them is as it was.
  if (SelectPhases(names, "preflight", config_.skip_phases)->size() == 1) {
    KEELSON_RETURN_IF_ERROR(RunPhase(kPhases[0], *this));
  }
  KEELSON_RETURN_IF_ERROR(SetMark());
  std::vector<std::string> skipped = config_.skip_phases;
  skipped.emplace_back("preflight");
  KEELSON_RETURN_IF_ERROR(RunPhases(kPhases, only, skipped, *this));
  return host_.Remove(paths::kUnfinished);
}

// "init", and the tokens in their order.
Result<> InitRun::ReadMark() {
  if (!host_.Exists(paths::kUnfinished)) return {};
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host_.Read(paths::kUnfinished));
  const std::vector<std::string_view> words = SplitWords(text);
  if (words.empty() || words[0] != kMark) {
    return Error(Code::kInvalid,
                 std::string(paths::kUnfinished) +
                     " is of another verb, which has not ended: run that again, or nodectl reset");
  }
  resumes_ = true;
  for (size_t i = 0; i < config_.bootstrap_tokens.size() && i + 1 < words.size(); ++i) {
    std::string& token = config_.bootstrap_tokens[i].token;
    if (token.empty()) token = words[i + 1];
  }
  return {};
}

bool InitRun::static_pod() const {
  return options_.static_pod ? *options_.static_pod : HasStaticControlPlane(host_);
}

Result<> InitRun::SetMark() {
  std::string text(kMark);
  for (const BootstrapToken& token : config_.bootstrap_tokens) text += "\n" + token.token;
  return host_.Write(paths::kUnfinished, text + "\n", 0600);
}

CertificateStore InitRun::Certificates() {
  return {host_, config_.cluster.certificates_dir, KeyKind(config_.cluster.encryption_algorithm), out_,
          clock_};
}

Result<> InitRun::EnsurePlanned(std::string_view certificate) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<CertificatePlan> plans, PlanCertificates(config_));
  for (const CertificatePlan& plan : plans) {
    if (plan.name == certificate) return EnsureCertificate(Certificates(), plan);
  }
  return Error(Code::kInternal, "no certificate " + std::string(certificate));
}

Result<> InitRun::EnsurePlannedOfEtcd(std::string_view certificate) {
  return config_.cluster.stacks_etcd() ? EnsurePlanned(certificate) : Result<>();
}

Result<> InitRun::EnsurePlannedKubeconfig(std::string_view name) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<KubeconfigPlan> plans, PlanKubeconfigs(config_));
  for (const KubeconfigPlan& plan : plans) {
    if (plan.name != name) continue;
    return EnsureKubeconfig(Certificates(), plan, config_.cluster.cluster_name,
                            config_.cluster.certificate_validity);
  }
  return Error(Code::kInternal, "no kubeconfig " + std::string(name));
}

Result<Authority> InitRun::Ca() { return LoadAuthority(host_, config_.cluster.certificates_dir, "ca"); }

Result<client::RestClient> InitRun::Api() {
  if (api_) return *api_;
  const bool super = host_.Exists(paths::kSuperAdminConf);
  KEELSON_ASSIGN_OR_RETURN(const std::string text,
                           host_.Read(super ? paths::kSuperAdminConf : paths::kAdminConf));
  KEELSON_ASSIGN_OR_RETURN(const Kubeconfig kubeconfig, ParseKubeconfig(text));
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ClientFor(kubeconfig, config_.timeouts.api_call));
  if (super) KEELSON_RETURN_IF_ERROR(Apply(api, AdminObjects(), config_.timeouts.api_call, clock_));
  api_ = std::move(api);
  return *api_;
}

Result<> InitRun::Write(const WantedObjects& objects) {
  if (config_.dry_run) {
    Describe(objects, out_);
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, Api());
  return Apply(api, objects, config_.timeouts.api_call, clock_);
}

}  // namespace keelson::ctl
