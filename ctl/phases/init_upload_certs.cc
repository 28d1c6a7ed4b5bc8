// The phase of init that lets other machines become control planes.
#include "ctl/cluster/copy_certs.h"
#include "ctl/phases/init_run.h"
#include "ctl/token/token.h"

namespace keelson::ctl::init {
namespace {

constexpr std::chrono::hours kLife{2};

Result<std::vector<std::optional<std::string>>> ReadShared(InitRun& run,
                                                           const std::vector<SharedFile>& files) {
  std::vector<std::optional<std::string>> out;
  for (const SharedFile& file : files) {
    std::optional<std::string>& text = out.emplace_back();
    // The key of an external CA is elsewhere.
    if (file.path.empty() || !run.host().Exists(file.path)) continue;
    KEELSON_ASSIGN_OR_RETURN(text, run.host().Read(file.path));
  }
  return out;
}

// A token that nothing can be done with: the Secret that belongs to it goes when it expires.
Result<corev1::Secret> CreateProxyToken(InitRun& run, const client::RestClient& api) {
  BootstrapToken token;
  token.token = NewToken();
  token.description = "Proxy for managing TTL for the kubeadm-certs secret";
  token.ttl = kLife;
  KEELSON_ASSIGN_OR_RETURN(const corev1::Secret secret, TokenSecret(token, run.clock().Now()));
  auto created = api.Create(secret);
  if (!created) return created.error().Wrap("error creating token to upload certs");
  return created;
}

}  // namespace

Result<> UploadCerts(InitRun& run) {
  if (!run.options().upload_certs) {
    run.out() << "[upload-certs] Skipping phase. Please see --upload-certs\n";
    return {};
  }
  if (run.config().cluster.control_plane_endpoint.empty()) {
    return Error(Code::kInvalid,
                 "a cluster without a controlPlaneEndpoint has one control plane: no other can join it");
  }
  run.out() << "[upload-certs] Storing the certificates in Secret \"" << kCertsSecret
            << "\" in the \"kube-system\" Namespace\n";
  if (run.config().dry_run) {
    run.out() << "[dryrun] Would write Secret \"kube-system/" << kCertsSecret << "\"\n";
    return {};
  }
  const std::vector<SharedFile> files = SharedFiles(run.config().cluster);
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> texts, ReadShared(run, files));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  KEELSON_ASSIGN_OR_RETURN(const corev1::Secret token, CreateProxyToken(run, api));
  KEELSON_ASSIGN_OR_RETURN(const corev1::Secret secret,
                           CertsSecret(files, texts, run.config().certificate_key, token));
  if (auto created = api.Create(secret); !created) {
    if (!created.error().Is(Code::kAlreadyExists)) return created.error().Wrap("write Secret kubeadm-certs");
    const auto updated = client::UpdateWithRetry<corev1::Secret>(
        api, "kube-system", kCertsSecret, "", [&](corev1::Secret& present) -> Result<bool> {
          *present.mutable_data() = secret.data();
          *present.mutable_metadata()->mutable_owner_references() = secret.metadata().owner_references();
          return true;
        });
    if (!updated) return updated.error().Wrap("write Secret kubeadm-certs");
  }
  KEELSON_RETURN_IF_ERROR(run.Write(CertsReaderObjects()));
  if (run.options().skip_certificate_key_print) return {};
  run.out() << "[upload-certs] Using certificate key:\n" << run.config().certificate_key << "\n";
  return {};
}

}  // namespace keelson::ctl::init
