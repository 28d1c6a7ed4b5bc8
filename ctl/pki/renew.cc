#include "ctl/pki/renew.h"

#include <algorithm>

#include "ctl/host/paths.h"
#include "lib/crypto/certificates.h"

namespace keelson::ctl {
namespace {

const std::vector<std::string> kServer = {"digital signature", "key encipherment", "server auth"};
const std::vector<std::string> kClient = {"digital signature", "key encipherment", "client auth"};
const std::vector<std::string> kBoth = {"digital signature", "key encipherment", "server auth",
                                        "client auth"};
constexpr char kEtcdCa[] = "etcd/ca";

std::string FileOf(const CertificateStore& store, const std::string& name, const char* suffix) {
  return store.directory + "/" + name + suffix;
}

const std::string& FileName(const ManagedCertificate& managed) {
  return managed.file.empty() ? managed.name : managed.file;
}

// kubeadm's etcd-ca for etcd/ca.
std::string DisplayName(std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

struct Pair {
  std::string certificate_pem, key_pem;
};

Result<Pair> LoadPair(const CertificateStore& store, const ManagedCertificate& managed) {
  Pair out;
  if (managed.kubeconfig.empty()) {
    KEELSON_ASSIGN_OR_RETURN(out.certificate_pem, store.host.Read(FileOf(store, FileName(managed), ".crt")));
    KEELSON_ASSIGN_OR_RETURN(out.key_pem, store.host.Read(FileOf(store, FileName(managed), ".key")));
    return out;
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string text, store.host.Read(managed.kubeconfig));
  KEELSON_ASSIGN_OR_RETURN(Kubeconfig config, ParseKubeconfig(text));
  return Pair{std::move(config.certificate_pem), std::move(config.key_pem)};
}

Result<> StoreCertificate(const CertificateStore& store, const ManagedCertificate& managed,
                          const std::string& certificate) {
  if (managed.kubeconfig.empty()) {
    return store.host.Write(FileOf(store, FileName(managed), ".crt"), certificate, 0644);
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string text, store.host.Read(managed.kubeconfig));
  KEELSON_ASSIGN_OR_RETURN(Kubeconfig config, ParseKubeconfig(text));
  config.certificate_pem = certificate;
  return store.host.Write(managed.kubeconfig, KubeconfigText(config), 0600);
}

std::string PathOf(const CertificateStore& store, const ManagedCertificate& managed) {
  return managed.kubeconfig.empty() ? FileOf(store, FileName(managed), ".crt") : managed.kubeconfig;
}

}  // namespace

const std::vector<ManagedCertificate>& ManagedCertificates() {
  static const std::vector<ManagedCertificate> all = {
      {"admin.conf", "ca",
       "certificate embedded in the kubeconfig file for the admin to use and for kubeadm itself", kClient,
       paths::kAdminConf},
      {"apiserver", "ca", "certificate for serving the Kubernetes API", kServer, ""},
      {"apiserver-etcd-client", "etcd/ca", "certificate the apiserver uses to access etcd", kClient, ""},
      {"apiserver-kubelet-client", "ca", "certificate for the API server to connect to kubelet", kClient, ""},
      {"controller-manager.conf", "ca",
       "certificate embedded in the kubeconfig file for the controller manager to use", kClient,
       paths::kControllerManagerConf},
      {"etcd-healthcheck-client", "etcd/ca", "certificate for liveness probes to healthcheck etcd", kClient,
       "", "etcd/healthcheck-client"},
      {"etcd-peer", "etcd/ca", "certificate for etcd nodes to communicate with each other", kBoth, "",
       "etcd/peer"},
      {"etcd-server", "etcd/ca", "certificate for serving etcd", kBoth, "", "etcd/server"},
      {"front-proxy-client", "front-proxy-ca", "certificate for the front proxy client", kClient, ""},
      {"scheduler.conf", "ca", "certificate embedded in the kubeconfig file for the scheduler manager to use",
       kClient, paths::kSchedulerConf},
      {"super-admin.conf", "ca", "certificate embedded in the kubeconfig file for the super-admin", kClient,
       paths::kSuperAdminConf},
  };
  return all;
}

const std::vector<std::string>& ManagedAuthorities() {
  static const std::vector<std::string> all = {"ca", "etcd/ca", "front-proxy-ca"};
  return all;
}

bool IsManaged(const CertificateStore& store, const ManagedCertificate& managed) {
  return managed.authority != kEtcdCa || store.host.Exists(FileOf(store, kEtcdCa, ".crt"));
}

Result<Expirations> FindExpirations(const CertificateStore& store) {
  Expirations out;
  for (const std::string& name : ManagedAuthorities()) {
    if (name == kEtcdCa && !store.host.Exists(FileOf(store, kEtcdCa, ".crt"))) continue;
    Expiration& one = out.authorities.emplace_back();
    one.name = DisplayName(name);
    one.missing = !store.host.Exists(FileOf(store, name, ".crt"));
    if (one.missing) continue;
    KEELSON_ASSIGN_OR_RETURN(const Authority authority, LoadAuthority(store.host, store.directory, name));
    KEELSON_ASSIGN_OR_RETURN(const crypto::CertificateInfo info,
                             crypto::InspectCertificate(authority.certificate_pem));
    one.not_after = info.not_after;
    one.external = !authority.key_pem;
  }
  for (const ManagedCertificate& managed : ManagedCertificates()) {
    if (!IsManaged(store, managed)) continue;
    Expiration& one = out.certificates.emplace_back();
    one.name = managed.name;
    one.authority = DisplayName(managed.authority);
    one.missing = !store.host.Exists(PathOf(store, managed));
    if (one.missing) continue;
    KEELSON_ASSIGN_OR_RETURN(const Pair pair, LoadPair(store, managed));
    Result<crypto::CertificateInfo> info = crypto::InspectCertificate(pair.certificate_pem);
    if (!info) return info.error().Wrap(managed.name);
    one.not_after = info->not_after;
    one.external = !store.host.Exists(FileOf(store, managed.authority, ".key"));
  }
  return out;
}

Result<> Renew(const CertificateStore& store, const ManagedCertificate& managed, std::chrono::seconds life) {
  if (!store.host.Exists(PathOf(store, managed))) {
    return Error(Code::kNotFound, "MISSING! " + managed.long_name);
  }
  KEELSON_ASSIGN_OR_RETURN(const Authority authority,
                           LoadAuthority(store.host, store.directory, managed.authority));
  if (!authority.key_pem) {
    return Error(Code::kUnimplemented,
                 "Detected external " + managed.authority + ", " + managed.long_name + " can't be renewed");
  }
  KEELSON_ASSIGN_OR_RETURN(const Pair pair, LoadPair(store, managed));
  Result<crypto::CertificateInfo> info = crypto::InspectCertificate(pair.certificate_pem);
  if (!info) return info.error().Wrap(managed.name);
  KEELSON_ASSIGN_OR_RETURN(const std::string certificate, SignFor(authority, pair.key_pem, info->subject,
                                                                  managed.usages, life, store.clock));
  return StoreCertificate(store, managed, certificate);
}

Result<> MakeRequests(const CertificateStore& store, const std::vector<CertificatePlan>& certificates,
                      const std::vector<KubeconfigPlan>& kubeconfigs, const std::string& kubeconfig_directory,
                      const std::string& cluster) {
  const auto refuse = [&](const std::string& file) -> Result<> {
    if (!store.host.Exists(file)) return {};
    return Error(Code::kAlreadyExists, file + " already exists");
  };
  for (const CertificatePlan& plan : certificates) {
    if (plan.authority.empty()) continue;
    KEELSON_RETURN_IF_ERROR(refuse(FileOf(store, plan.name, ".key")));
    KEELSON_RETURN_IF_ERROR(refuse(FileOf(store, plan.name, ".csr")));
    KEELSON_ASSIGN_OR_RETURN(const std::string key, crypto::NewPrivateKey(store.key_kind));
    KEELSON_ASSIGN_OR_RETURN(const std::string request, crypto::NewCertificateRequest(key, plan.subject));
    KEELSON_RETURN_IF_ERROR(store.host.Write(FileOf(store, plan.name, ".key"), key, 0600));
    KEELSON_RETURN_IF_ERROR(store.host.Write(FileOf(store, plan.name, ".csr"), request, 0600));
    store.out << "[certs] Generating key and CSR for " << plan.name << "\n";
  }
  std::string ca;
  if (const std::string file = FileOf(store, "ca", ".crt"); store.host.Exists(file)) {
    KEELSON_ASSIGN_OR_RETURN(ca, store.host.Read(file));
  }
  for (const KubeconfigPlan& plan : kubeconfigs) {
    const std::string file = kubeconfig_directory + "/" + plan.name + ".conf";
    KEELSON_RETURN_IF_ERROR(refuse(file));
    KEELSON_RETURN_IF_ERROR(refuse(file + ".csr"));
    Kubeconfig made;
    made.server = plan.server;
    made.ca_pem = ca;
    made.cluster = cluster;
    made.user = plan.subject.common_name;
    KEELSON_ASSIGN_OR_RETURN(made.key_pem, crypto::NewPrivateKey(store.key_kind));
    KEELSON_ASSIGN_OR_RETURN(const std::string request,
                             crypto::NewCertificateRequest(made.key_pem, plan.subject));
    KEELSON_RETURN_IF_ERROR(store.host.Write(file, KubeconfigText(made), 0600));
    KEELSON_RETURN_IF_ERROR(store.host.Write(file + ".csr", request, 0600));
    store.out << "[kubeconfig] Generating key and CSR for " << plan.name << ".conf\n";
  }
  return {};
}

}  // namespace keelson::ctl
