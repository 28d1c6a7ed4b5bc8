#include "ctl/pki/certificates.h"

#include "ctl/host/paths.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificate_checks.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::minutes kBackdated{5};

std::string TimeText(WallTime time) { return api::FormatTime(api::ToTime(time)); }

std::string CertificateFile(const CertificateStore& store, const std::string& name) {
  return store.directory + "/" + name + ".crt";
}
std::string KeyFile(const CertificateStore& store, const std::string& name) {
  return store.directory + "/" + name + ".key";
}

// The directory and keys belong to root; the process of the control plane reads them as a member of its group.
Result<> Share(const CertificateStore& store, const std::string& path) {
  KEELSON_RETURN_IF_ERROR(store.host.LetGroupRead(store.directory, paths::kControlPlaneGroup));
  return store.host.LetGroupRead(path, paths::kControlPlaneGroup);
}

// The key of an earlier run, or a new one that is written.
Result<std::string> EnsureKey(const CertificateStore& store, const std::string& name) {
  const std::string file = KeyFile(store, name);
  if (store.host.Exists(file)) {
    KEELSON_RETURN_IF_ERROR(Share(store, file));
    return store.host.Read(file);
  }
  KEELSON_ASSIGN_OR_RETURN(std::string key, crypto::NewPrivateKey(store.key_kind));
  KEELSON_RETURN_IF_ERROR(store.host.MakeDirectory(store.directory, 0755));
  KEELSON_RETURN_IF_ERROR(store.host.Write(file, key, 0600));
  KEELSON_RETURN_IF_ERROR(Share(store, file));
  return key;
}

Result<> CheckPresentAuthority(const CertificateStore& store, const CertificatePlan& plan) {
  KEELSON_ASSIGN_OR_RETURN(const Authority present, LoadAuthority(store.host, store.directory, plan.name));
  KEELSON_RETURN_IF_ERROR(
      CheckDates(present.certificate_pem, plan.name + " certificate authority", store.clock.Now()));
  if (present.key_pem) {
    store.out << "[certs] Using existing " << plan.name << " certificate authority\n";
    return Share(store, KeyFile(store, plan.name));
  }
  store.out << "[certs] Using existing " << plan.name << " keyless certificate authority\n";
  return {};
}

Result<> CheckPresentCertificate(const CertificateStore& store, const CertificatePlan& plan) {
  KEELSON_ASSIGN_OR_RETURN(const std::string certificate, store.host.Read(CertificateFile(store, plan.name)));
  KEELSON_ASSIGN_OR_RETURN(const Authority authority,
                           LoadAuthority(store.host, store.directory, plan.authority));
  if (auto info = crypto::InspectCertificate(certificate); !info) {
    return info.error().Wrap("failure loading " + plan.name + " certificate");
  } else if (info->not_after < store.clock.Now()) {
    return Error(Code::kInvalid,
                 "the certificate " + plan.name + " has expired: nodectl certs renew " + plan.name);
  }
  if (!crypto::IsSignedBy(certificate, authority.certificate_pem)) {
    return Error(Code::kInvalid, "certificate " + plan.name + " is not signed by corresponding CA");
  }
  Result<std::string> key = store.host.Read(KeyFile(store, plan.name));
  if (!key) return key.error().Wrap("failure loading " + plan.name + " key");
  if (!crypto::BelongTogether(certificate, *key)) {
    return Error(Code::kInvalid, "certificate " + plan.name + " and its key do not belong together");
  }
  store.out << "[certs] Using existing " << plan.name << " certificate and key on disk\n";
  return Share(store, KeyFile(store, plan.name));
}

void TellNames(const CertificateStore& store, const CertificatePlan& plan) {
  if (plan.subject.dns_names.empty() && plan.subject.ip_addresses.empty()) return;
  store.out << "[certs] " << plan.name << " serving cert is signed for DNS names ["
            << Join(plan.subject.dns_names, " ") << "] and IPs [" << Join(plan.subject.ip_addresses, " ")
            << "]\n";
}

}  // namespace

Result<Authority> LoadAuthority(const Host& host, const std::string& directory, const std::string& name) {
  Authority out;
  Result<std::string> certificate = host.Read(directory + "/" + name + ".crt");
  if (!certificate) return certificate.error().Wrap("failure loading " + name + " certificate authority");
  out.certificate_pem = *std::move(certificate);
  if (!crypto::IsAuthority(out.certificate_pem)) {
    return Error(Code::kInvalid, name + " certificate is not a certificate authority");
  }
  const std::string key_file = directory + "/" + name + ".key";
  if (!host.Exists(key_file)) return out;
  KEELSON_ASSIGN_OR_RETURN(out.key_pem, host.Read(key_file));
  if (!crypto::BelongTogether(out.certificate_pem, *out.key_pem)) {
    return Error(Code::kInvalid, name + ": CA certificate and key do not belong together");
  }
  return out;
}

Result<> CheckDates(const std::string& certificate_pem, const std::string& what, WallTime now) {
  Result<crypto::CertificateInfo> info = crypto::InspectCertificate(certificate_pem);
  if (!info) return info.error().Wrap("failure loading " + what);
  if (info->not_after < now) {
    return Error(Code::kInvalid, "the " + what + " has expired: it was valid until " +
                                     TimeText(info->not_after) + ", and this machine's clock says " +
                                     TimeText(now) + ". Correct the clock, or make a new one");
  }
  if (info->not_before > now) {
    return Error(Code::kInvalid, "the " + what + " is not valid before " + TimeText(info->not_before) +
                                     ", and this machine's clock says " + TimeText(now) +
                                     ": correct the clock; timedatectl shows whether it is synchronized");
  }
  return {};
}

Result<std::string> SignFor(const Authority& authority, const std::string& key_pem,
                            const crypto::CertificateSubject& subject, const std::vector<std::string>& usages,
                            std::chrono::seconds life, Clock& clock) {
  if (!authority.key_pem) return Error(Code::kInvalid, "the key of the CA is not on this machine");
  KEELSON_ASSIGN_OR_RETURN(
      const crypto::CertificateAuthority signer,
      crypto::CertificateAuthority::FromPem(authority.certificate_pem, *authority.key_pem));
  KEELSON_ASSIGN_OR_RETURN(const std::string request, crypto::NewCertificateRequest(key_pem, subject));
  const WallTime now = clock.Now();
  KEELSON_RETURN_IF_ERROR(CheckDates(authority.certificate_pem, "certificate authority", now));
  return signer.Sign(request, {now - kBackdated, now + life, usages});
}

Result<> EnsureCertificate(const CertificateStore& store, const CertificatePlan& plan) {
  const std::string file = CertificateFile(store, plan.name);
  const bool is_authority = plan.authority.empty();
  if (store.host.Exists(file)) {
    return is_authority ? CheckPresentAuthority(store, plan) : CheckPresentCertificate(store, plan);
  }
  Authority authority;
  if (!is_authority) {
    KEELSON_ASSIGN_OR_RETURN(authority, LoadAuthority(store.host, store.directory, plan.authority));
    if (!authority.key_pem) {
      return Error(Code::kInvalid, "the CA " + plan.authority + " has no key on this machine, and " + file +
                                       " is missing: make requests with nodectl certs generate-csr");
    }
  }
  store.out << "[certs] Generating \"" << plan.name << "\" certificate and key\n";
  KEELSON_ASSIGN_OR_RETURN(const std::string key, EnsureKey(store, plan.name));
  std::string certificate;
  if (is_authority) {
    KEELSON_ASSIGN_OR_RETURN(certificate,
                             crypto::NewAuthorityCertificate(key, plan.subject.common_name, plan.life));
  } else {
    KEELSON_ASSIGN_OR_RETURN(certificate,
                             SignFor(authority, key, plan.subject, plan.usages, plan.life, store.clock));
    TellNames(store, plan);
  }
  return store.host.Write(file, certificate, 0644);
}

Result<> EnsureServiceAccountKey(const CertificateStore& store) {
  const std::string public_file = store.directory + "/sa.pub";
  const bool present = store.host.Exists(KeyFile(store, "sa"));
  store.out << (present ? "[certs] Using the existing \"sa\" key\n"
                        : "[certs] Generating \"sa\" key and public key\n");
  KEELSON_ASSIGN_OR_RETURN(const std::string key, EnsureKey(store, "sa"));
  Result<std::string> public_key = crypto::PublicKeyPem(key);
  if (!public_key) return public_key.error().Wrap("sa key existed but it could not be loaded properly");
  if (store.host.Exists(public_file)) return {};
  return store.host.Write(public_file, *public_key, 0644);
}

}  // namespace keelson::ctl
