#include "lib/crypto/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>

#include "lib/crypto/alternative_names.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

bool SetName(X509_NAME* name, const CertificateSubject& subject) {
  auto add = [&](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, Bytes(value),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  for (const std::string& organization : subject.organizations) {
    if (!add("O", organization)) return false;
  }
  return subject.common_name.empty() || add("CN", subject.common_name);
}

bool AddNames(X509_REQ* request, const std::string& names) {
  if (names.empty()) return true;
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  if (!extension) return false;
  ExtensionsPtr list(sk_X509_EXTENSION_new_null());
  sk_X509_EXTENSION_push(list.get(), extension);
  return X509_REQ_add_extensions(request, list.get()) == 1;
}

struct KeyKind {
  std::string_view name;
  EVP_PKEY* (*generate)();
};
constexpr KeyKind kKeyKinds[] = {
    {"RSA2048", [] { return EVP_RSA_gen(2048); }},
    {"RSA3072", [] { return EVP_RSA_gen(3072); }},
    {"RSA4096", [] { return EVP_RSA_gen(4096); }},
    {"ECDSAP256", [] { return EVP_EC_gen("P-256"); }},
    {"ECDSAP384", [] { return EVP_EC_gen("P-384"); }},
    {"ECDSAP521", [] { return EVP_EC_gen("P-521"); }},
    {"ED25519", [] { return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"); }},
};

}  // namespace

Result<std::string> NewPrivateKey(std::string_view kind) {
  const auto* known = std::find_if(std::begin(kKeyKinds), std::end(kKeyKinds),
                                   [&](const KeyKind& one) { return one.name == kind; });
  if (known == std::end(kKeyKinds)) {
    return Error(Code::kInvalid, "unknown key type \"" + std::string(kind) + "\"");
  }
  KeyPtr key(known->generate());
  if (!key) return OpenSslError("generate private key");
  return WritePem("write private key", [&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Result<std::string> NewCertificateRequest(const std::string& key_pem, const CertificateSubject& subject) {
  KEELSON_ASSIGN_OR_RETURN(KeyPtr key, ReadKey(key_pem));
  RequestPtr request(X509_REQ_new());
  const bool made = request && SetName(X509_REQ_get_subject_name(request.get()), subject) &&
                    X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
                    AddNames(request.get(), AlternativeNames(subject.dns_names, subject.ip_addresses)) &&
                    X509_REQ_sign(request.get(), key.get(), DigestFor(key.get())) > 0;
  if (!made) return OpenSslError("make certificate request");
  return WritePem("write certificate request",
                  [&](BIO* out) { return PEM_write_bio_X509_REQ(out, request.get()); });
}

Result<CertificateSubject> SubjectOfRequest(std::string_view der) {
  const unsigned char* at = Bytes(der);
  RequestPtr request(d2i_X509_REQ(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!request) return Error(Code::kInvalid, "no certificate request");
  CertificateSubject out;
  X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, EntriesOf(subject, NID_commonName));
  if (!names.empty()) out.common_name = names.back();
  KEELSON_ASSIGN_OR_RETURN(out.organizations, EntriesOf(subject, NID_organizationName));
  return out;
}

Result<std::string> NewSelfSigned(const std::string& key_pem, const CertificateSubject& subject,
                                  std::chrono::seconds life) {
  KEELSON_ASSIGN_OR_RETURN(KeyPtr key, ReadKey(key_pem));
  CertificatePtr made(X509_new());
  X509* certificate = made.get();
  const bool filled = certificate && X509_set_version(certificate, 2) == 1 && SetSerial(certificate) &&
                      X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
                      X509_gmtime_adj(X509_getm_notAfter(certificate), static_cast<long>(life.count())) &&
                      X509_set_pubkey(certificate, key.get()) == 1 &&
                      SetName(X509_get_subject_name(certificate), subject) &&
                      X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
                      AddExtension(certificate, certificate, NID_key_usage,
                                   "critical,digitalSignature,keyEncipherment,keyCertSign") &&
                      AddExtension(certificate, certificate, NID_ext_key_usage, "serverAuth") &&
                      AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE") &&
                      AddExtension(certificate, certificate, NID_subject_alt_name,
                                   AlternativeNames(subject.dns_names, subject.ip_addresses)) &&
                      X509_sign(certificate, key.get(), DigestFor(key.get())) > 0;
  if (!filled) return OpenSslError("make certificate");
  return WritePem("write certificate", [&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

Result<CertificateInfo> InspectCertificate(const std::string& pem) {
  KEELSON_ASSIGN_OR_RETURN(CertificatePtr certificate, ReadCertificate(pem));
  CertificateInfo out;
  out.not_before = TimeOf(X509_get0_notBefore(certificate.get()));
  out.not_after = TimeOf(X509_get0_notAfter(certificate.get()));
  X509_NAME* name = X509_get_subject_name(certificate.get());
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, EntriesOf(name, NID_commonName));
  if (!names.empty()) out.subject.common_name = names.back();
  KEELSON_ASSIGN_OR_RETURN(out.subject.organizations, EntriesOf(name, NID_organizationName));
  KEELSON_ASSIGN_OR_RETURN(NamesOfHosts hosts, ReadAlternativeNames(X509_get0_extensions(certificate.get())));
  out.subject.dns_names = std::move(hosts.dns_names);
  out.subject.ip_addresses = std::move(hosts.ip_addresses);
  return out;
}

bool BelongTogether(const std::string& certificate_pem, const std::string& key_pem) {
  auto certificate = ReadCertificate(certificate_pem);
  auto key = ReadKey(key_pem);
  const bool same = certificate && key && X509_check_private_key(certificate->get(), key->get()) == 1;
  ERR_clear_error();
  return same;
}

}  // namespace keelson::crypto
