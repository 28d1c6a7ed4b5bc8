#include "lib/crypto/certificate_checks.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <memory>
#include <set>

#include "lib/base/text.h"
#include "lib/crypto/digest.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {

namespace {

// SHA-256 of each certificate of a bundle.
std::set<std::string> FingerprintsOf(const std::string& bundle) {
  std::set<std::string> out;
  const std::unique_ptr<BIO, int (*)(BIO*)> pem(
      BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size())), BIO_free);
  while (X509* read = PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr)) {
    const CertificatePtr certificate(read);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (X509_digest(read, EVP_sha256(), digest, &size) == 1) {
      out.emplace(reinterpret_cast<char*>(digest), size);
    }
  }
  ERR_clear_error();
  return out;
}

}  // namespace

bool IsAuthority(const std::string& certificate_pem) {
  auto certificate = ReadCertificate(certificate_pem);
  const bool is_one = certificate && (X509_get_extension_flags(certificate->get()) & EXFLAG_CA) != 0;
  ERR_clear_error();
  return is_one;
}

bool IsSignedBy(const std::string& certificate_pem, const std::string& authority_pem) {
  auto certificate = ReadCertificate(certificate_pem);
  auto authority = ReadCertificate(authority_pem);
  bool is_signed = false;
  if (certificate && authority && X509_check_issued(authority->get(), certificate->get()) == X509_V_OK) {
    EVP_PKEY* key = X509_get0_pubkey(authority->get());
    is_signed = key && X509_verify(certificate->get(), key) == 1;
  }
  ERR_clear_error();
  return is_signed;
}

Result<std::string> PublicKeySha256(const std::string& certificate_pem) {
  KEELSON_ASSIGN_OR_RETURN(CertificatePtr certificate, ReadCertificate(certificate_pem));
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate.get()), &der);
  if (size <= 0) return OpenSslError("write public key");
  std::string hash = Sha256Hex({reinterpret_cast<char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return hash;
}

Result<std::string> PublicKeyPem(const std::string& key_pem) {
  KEELSON_ASSIGN_OR_RETURN(KeyPtr key, ReadKey(key_pem));
  return WritePem("write public key", [&](BIO* out) { return PEM_write_bio_PUBKEY(out, key.get()); });
}

bool HaveCertificateInCommon(const std::string& one_bundle, const std::string& other_bundle) {
  const std::set<std::string> known = FingerprintsOf(one_bundle);
  for (const std::string& fingerprint : FingerprintsOf(other_bundle)) {
    if (known.count(fingerprint) != 0) return true;
  }
  return false;
}

}  // namespace keelson::crypto
