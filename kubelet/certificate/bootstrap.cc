#include "kubelet/certificate/bootstrap.h"

#include <yaml-cpp/yaml.h>

#include "kubelet/certificate/certificate_request.h"
#include "kubelet/certificate/certificate_store.h"
#include "lib/base/base64.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/crypto/digest.h"
#include "lib/crypto/signing_key.h"

namespace keelson::kubelet {
namespace {

constexpr std::chrono::hours kPatience(1);

YAML::Node ClusterOf(const client::RestConfig& config) {
  YAML::Node cluster;
  cluster["server"] = config.server;
  if (!config.ca_file.empty()) {
    cluster["certificate-authority"] = config.ca_file;
  } else if (!config.ca_pem.empty()) {
    cluster["certificate-authority-data"] = EncodeBase64(config.ca_pem);
  }
  if (config.insecure) cluster["insecure-skip-tls-verify"] = true;
  if (!config.tls_server_name.empty()) cluster["tls-server-name"] = config.tls_server_name;
  return cluster;
}

// The bootstrap kubeconfig's cluster, with a user whose certificate and key are in `pair`.
std::string KubeconfigText(const client::RestConfig& config, const std::string& pair) {
  YAML::Node cluster, context, user, root;
  cluster["name"] = "default-cluster";
  cluster["cluster"] = ClusterOf(config);
  context["name"] = "default-context";
  context["context"]["cluster"] = "default-cluster";
  context["context"]["namespace"] = "default";
  context["context"]["user"] = "default-auth";
  user["name"] = "default-auth";
  user["user"]["client-certificate"] = pair;
  user["user"]["client-key"] = pair;
  root["apiVersion"] = "v1";
  root["kind"] = "Config";
  root["clusters"].push_back(cluster);
  root["contexts"].push_back(context);
  root["current-context"] = "default-context";
  root["users"].push_back(user);
  return YAML::Dump(root) + "\n";
}

// The key of an earlier start that is still waiting, or a new one.
Result<std::string> PendingKey(const std::string& path) {
  if (auto key = ReadFile(path)) {
    if (crypto::SigningKey::FromPem(*key)) return key;
  }
  KEELSON_ASSIGN_OR_RETURN(std::string key, crypto::NewPrivateKey());
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(path, key, 0600));
  return key;
}

// The same for the same key and node, so that requests do not pile up.
Result<std::string> RequestName(const std::string& key_pem, const std::string& node_name) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<crypto::SigningKey> keys, crypto::SigningKey::FromPem(key_pem));
  return "node-csr-" + crypto::Sha256Hex(keys.front().id() + "/" + node_name);
}

}  // namespace

bool HasUsableCredentials(const std::string& kubeconfig, WallTime now) {
  if (!PathExists(kubeconfig)) return false;
  auto config = client::LoadKubeconfig(kubeconfig);
  if (!config) {
    log::Warn("Cannot use the kubeconfig", {{"path", kubeconfig}, {"err", config.error()}});
    return false;
  }
  if (config->certificate_pem.empty()) return true;
  auto certificate = crypto::InspectCertificate(config->certificate_pem);
  if (!certificate || certificate->not_after > now) return certificate.has_value();
  log::Warn("Part of the existing bootstrap client certificate is expired", {{"path", kubeconfig}});
  return false;
}

Result<> Bootstrap(const BootstrapOptions& options, const Connect& connect, std::stop_token stop,
                   Clock& clock) {
  if (HasUsableCredentials(options.kubeconfig, clock.Now())) {
    log::Debug("Kubeconfig exists and is valid, skipping bootstrap", {{"path", options.kubeconfig}});
    return {};
  }
  log::Info("Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file");
  auto config = client::LoadKubeconfig(options.bootstrap_kubeconfig);
  if (!config) return config.error().Wrap("unable to load bootstrap kubeconfig");
  KEELSON_ASSIGN_OR_RETURN(auto transport, connect(*config));
  KEELSON_RETURN_IF_ERROR(MakeDirs(options.cert_dir));
  const std::string pending = options.cert_dir + "/kubelet-client.key.tmp";
  KEELSON_ASSIGN_OR_RETURN(std::string key, PendingKey(pending));
  CertificateTemplate wanted = ClientCertificateTemplate(options.node_name);
  KEELSON_ASSIGN_OR_RETURN(wanted.name, RequestName(key, options.node_name));
  auto certificate = RequestCertificate(client::RestClient(transport), wanted, key, kPatience, stop);
  if (!certificate) {
    // A decision stands as long as its request does: the next start makes a new one.
    if (certificate.error().Is(Code::kForbidden)) KEELSON_RETURN_IF_ERROR(RemoveFile(pending));
    return certificate.error().Wrap("failed to run Kubelet: cannot bootstrap");
  }
  const CertificateStore store(options.cert_dir, "kubelet-client");
  KEELSON_RETURN_IF_ERROR(store.Store(*certificate, key, clock.Now()));
  KEELSON_RETURN_IF_ERROR(MakeDirs(options.kubeconfig.substr(0, options.kubeconfig.rfind('/') + 1) + "."));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(options.kubeconfig, KubeconfigText(*config, store.path()), 0600));
  return RemoveFile(pending);
}

}  // namespace keelson::kubelet
