#include "controlplane/etcd/pki.h"

#include <chrono>
#include <optional>
#include <vector>

#include "lib/base/file.h"
#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"

namespace keelson::etcd {
namespace {

using Clock = std::chrono::system_clock;

constexpr std::chrono::hours kLifetime(10 * 365 * 24), kRenew(90 * 24);

struct Identity {
  std::string certificate_pem, key_pem;
};

Result<> Save(const Identity& identity, const std::string& stem) {
  // The key first: a certificate without its key would be taken for complete.
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(stem + ".key", identity.key_pem, 0600));
  return WriteFileAtomic(stem + ".crt", identity.certificate_pem, 0644);
}

// Nothing when the files are missing, unreadable, do not belong together or are close to their end.
std::optional<Identity> Load(const std::string& stem) {
  Result<std::string> certificate = ReadFile(stem + ".crt"), key = ReadFile(stem + ".key");
  if (!certificate || !key || !crypto::BelongTogether(*certificate, *key)) return std::nullopt;
  Result<crypto::CertificateInfo> info = crypto::InspectCertificate(*certificate);
  if (!info || info->not_after <= Clock::now() + kRenew) return std::nullopt;
  return Identity{std::move(*certificate), std::move(*key)};
}

Result<Identity> EnsureAuthority(const std::string& stem) {
  if (std::optional<Identity> found = Load(stem)) return std::move(*found);
  Identity made;
  KEELSON_ASSIGN_OR_RETURN(made.key_pem, crypto::NewPrivateKey());
  KEELSON_ASSIGN_OR_RETURN(made.certificate_pem,
                           crypto::NewAuthorityCertificate(made.key_pem, "keelson-etcd-ca", kLifetime));
  KEELSON_RETURN_IF_ERROR(Save(made, stem));
  return made;
}

Result<> EnsureLeaf(const std::string& stem, const crypto::CertificateSubject& subject,
                    std::vector<std::string> usages, const crypto::CertificateAuthority& ca) {
  if (std::optional<Identity> found = Load(stem); found && ca.HasSigned(found->certificate_pem)) return {};
  Identity made;
  KEELSON_ASSIGN_OR_RETURN(made.key_pem, crypto::NewPrivateKey());
  KEELSON_ASSIGN_OR_RETURN(const std::string request, crypto::NewCertificateRequest(made.key_pem, subject));
  usages.emplace_back("digital signature");
  const auto now = Clock::now();
  KEELSON_ASSIGN_OR_RETURN(made.certificate_pem, ca.Sign(request, {now - std::chrono::minutes(5),
                                                                   now + kLifetime, std::move(usages)}));
  return Save(made, stem);
}

}  // namespace

Result<Pki> EnsurePki(const std::string& dir) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(dir, 0700));
  KEELSON_ASSIGN_OR_RETURN(const Identity authority, EnsureAuthority(dir + "/ca"));
  KEELSON_ASSIGN_OR_RETURN(
      const crypto::CertificateAuthority ca,
      crypto::CertificateAuthority::FromPem(authority.certificate_pem, authority.key_pem));
  KEELSON_RETURN_IF_ERROR(EnsureLeaf(dir + "/server", {"etcd", {}, {"localhost"}, {"127.0.0.1", "::1"}},
                                     {"server auth", "client auth"}, ca));
  KEELSON_RETURN_IF_ERROR(EnsureLeaf(dir + "/client", {"kube-apiserver", {}, {}, {}}, {"client auth"}, ca));
  return Pki{dir + "/ca.crt", dir + "/server.crt", dir + "/server.key", dir + "/client.crt",
             dir + "/client.key"};
}

}  // namespace keelson::etcd
