#include "lib/crypto/certificate_authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>

#include "lib/crypto/alternative_names.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

Result<RequestPtr> ReadRequest(const std::string& pem) {
  RequestPtr request(PEM_read_bio_X509_REQ(ReadPem(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!request) return Error(Code::kBadRequest, "PEM block type must be CERTIFICATE REQUEST");
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  const bool own = key && X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  if (!own) return Error(Code::kBadRequest, "the request is not signed with its own key");
  return request;
}

struct Usage {
  const char* name;
  const char* key;       // in OpenSSL's words; null: none
  const char* extended;  // likewise
};
constexpr Usage kUsages[] = {
    {"signing", "digitalSignature", nullptr},
    {"digital signature", "digitalSignature", nullptr},
    {"content commitment", "nonRepudiation", nullptr},
    {"key encipherment", "keyEncipherment", nullptr},
    {"key agreement", "keyAgreement", nullptr},
    {"data encipherment", "dataEncipherment", nullptr},
    {"cert sign", "keyCertSign", nullptr},
    {"crl sign", "cRLSign", nullptr},
    {"encipher only", "encipherOnly", nullptr},
    {"decipher only", "decipherOnly", nullptr},
    {"any", nullptr, "anyExtendedKeyUsage"},
    {"server auth", nullptr, "serverAuth"},
    {"client auth", nullptr, "clientAuth"},
    {"code signing", nullptr, "codeSigning"},
    {"email protection", nullptr, "emailProtection"},
    {"s/mime", nullptr, "emailProtection"},
    {"ipsec end system", nullptr, "ipsecEndSystem"},
    {"ipsec tunnel", nullptr, "ipsecTunnel"},
    {"ipsec user", nullptr, "ipsecUser"},
    {"timestamping", nullptr, "timeStamping"},
    {"ocsp signing", nullptr, "OCSPSigning"},
    {"microsoft sgc", nullptr, "msSGC"},
    {"netscape sgc", nullptr, "nsSGC"},
};

struct UsageTexts {
  std::string key, extended;  // as AddExtension takes them
};

Result<UsageTexts> TextsOf(const std::vector<std::string>& usages) {
  UsageTexts out;
  std::string unknown;
  for (const std::string& name : usages) {
    const auto* usage = std::find_if(std::begin(kUsages), std::end(kUsages),
                                     [&](const Usage& one) { return name == one.name; });
    if (usage == std::end(kUsages)) {
      unknown += (unknown.empty() ? "" : " ") + name;
      continue;
    }
    if (usage->key) out.key += std::string(out.key.empty() ? "critical," : ",") + usage->key;
    if (usage->extended) out.extended += std::string(out.extended.empty() ? "" : ",") + usage->extended;
  }
  if (!unknown.empty()) return Error(Code::kBadRequest, "unrecognized usage values: [" + unknown + "]");
  return out;
}

bool SetLife(X509* certificate, const CertificateTerms& terms, const X509* authority) {
  using Clock = std::chrono::system_clock;
  ASN1_TIME* end = X509_getm_notAfter(certificate);
  if (!ASN1_TIME_set(X509_getm_notBefore(certificate), Clock::to_time_t(terms.not_before)) ||
      !ASN1_TIME_set(end, Clock::to_time_t(terms.not_after))) {
    return false;
  }
  const ASN1_TIME* last = X509_get0_notAfter(authority);
  return ASN1_TIME_compare(end, last) <= 0 || X509_set1_notAfter(certificate, last) == 1;
}

// The request's alternative names, as they stand.
bool CopyAlternativeNames(X509* certificate, const STACK_OF(X509_EXTENSION) * extensions) {
  const int at = X509v3_get_ext_by_NID(extensions, NID_subject_alt_name, -1);
  return at < 0 || X509_add_ext(certificate, X509v3_get_ext(extensions, at), -1) == 1;
}

}  // namespace

Result<RequestedCertificate> InspectRequest(const std::string& request_pem) {
  KEELSON_ASSIGN_OR_RETURN(RequestPtr request, ReadRequest(request_pem));
  RequestedCertificate out;
  X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, EntriesOf(subject, NID_commonName));
  if (!names.empty()) out.common_name = names.back();
  KEELSON_ASSIGN_OR_RETURN(out.organizations, EntriesOf(subject, NID_organizationName));
  ExtensionsPtr extensions(X509_REQ_get_extensions(request.get()));
  KEELSON_ASSIGN_OR_RETURN(NamesOfHosts hosts, ReadAlternativeNames(extensions.get()));
  out.dns_names = std::move(hosts.dns_names);
  out.ip_addresses = std::move(hosts.ip_addresses);
  out.emails = std::move(hosts.emails);
  out.uris = std::move(hosts.uris);
  return out;
}

struct CertificateAuthority::Impl {
  CertificatePtr certificate;
  KeyPtr key;
};

Result<CertificateAuthority> CertificateAuthority::FromPem(const std::string& certificate_pem,
                                                           const std::string& key_pem) {
  auto impl = std::make_shared<Impl>();
  KEELSON_ASSIGN_OR_RETURN(impl->certificate, ReadCertificate(certificate_pem));
  KEELSON_ASSIGN_OR_RETURN(impl->key, ReadKey(key_pem));
  const bool pair = X509_check_private_key(impl->certificate.get(), impl->key.get()) == 1;
  ERR_clear_error();
  if (!pair) return Error(Code::kInvalid, "CA certificate and key do not belong together");
  CertificateAuthority out;
  out.impl_ = std::move(impl);
  return out;
}

Result<std::string> CertificateAuthority::Sign(const std::string& request_pem,
                                               const CertificateTerms& terms) const {
  KEELSON_ASSIGN_OR_RETURN(RequestPtr request, ReadRequest(request_pem));
  KEELSON_ASSIGN_OR_RETURN(UsageTexts usages, TextsOf(terms.usages));
  X509* authority = impl_->certificate.get();
  EVP_PKEY* key = impl_->key.get();
  CertificatePtr made(X509_new());
  X509* certificate = made.get();
  ExtensionsPtr extensions(X509_REQ_get_extensions(request.get()));
  const bool signed_well =
      certificate && X509_set_version(certificate, 2) == 1 && SetSerial(certificate) &&
      SetLife(certificate, terms, authority) &&
      X509_set_subject_name(certificate, X509_REQ_get_subject_name(request.get())) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(authority)) == 1 &&
      X509_set_pubkey(certificate, X509_REQ_get0_pubkey(request.get())) == 1 &&
      AddExtension(certificate, authority, NID_key_usage, usages.key) &&
      AddExtension(certificate, authority, NID_ext_key_usage, usages.extended) &&
      AddExtension(certificate, authority, NID_basic_constraints, "critical,CA:FALSE") &&
      (!X509_get0_subject_key_id(authority) ||
       AddExtension(certificate, authority, NID_authority_key_identifier, "keyid")) &&
      (!extensions || CopyAlternativeNames(certificate, extensions.get())) &&
      X509_sign(certificate, key, DigestFor(key)) > 0;
  if (!signed_well) return OpenSslError("make certificate");
  return WritePem("write certificate", [&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

bool CertificateAuthority::HasSigned(const std::string& certificate_pem) const {
  auto certificate = ReadCertificate(certificate_pem);
  const bool own = certificate && X509_verify(certificate->get(), impl_->key.get()) == 1;
  ERR_clear_error();
  return own;
}

Result<std::string> NewAuthorityCertificate(const std::string& key_pem, const std::string& common_name,
                                            std::chrono::seconds life) {
  KEELSON_ASSIGN_OR_RETURN(KeyPtr key, ReadKey(key_pem));
  CertificatePtr made(X509_new());
  X509* certificate = made.get();
  const bool filled =
      certificate && X509_set_version(certificate, 2) == 1 && SetSerial(certificate) &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), -300) &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), static_cast<long>(life.count())) &&
      X509_set_pubkey(certificate, key.get()) == 1 &&
      X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, Bytes(common_name),
                                 static_cast<int>(common_name.size()), -1, 0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
      AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE") &&
      AddExtension(certificate, certificate, NID_key_usage,
                   "critical,digitalSignature,keyEncipherment,keyCertSign") &&
      AddExtension(certificate, certificate, NID_subject_key_identifier, "hash") &&
      AddExtension(certificate, certificate, NID_subject_alt_name, AlternativeNames({common_name}, {})) &&
      X509_sign(certificate, key.get(), DigestFor(key.get())) > 0;
  if (!filled) return OpenSslError("make certificate");
  return WritePem("write certificate", [&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

}  // namespace keelson::crypto
