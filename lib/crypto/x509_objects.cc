#include "lib/crypto/x509_objects.h"

#include "lib/base/wall_time.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <ctime>

namespace keelson::crypto {

namespace {
using NumberPtr = OpenSslPtr<ASN1_INTEGER, ASN1_INTEGER_free>;
}  // namespace

Error OpenSslError(const char* what) {
  char text[160] = {};
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return Error(Code::kInvalid, std::string(what) + ": " + text);
}

std::chrono::system_clock::time_point TimeOf(const ASN1_TIME* time) {
  tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return WallTimeOf(timegm(&parts));
}

BioPtr ReadPem(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Result<std::string> WritePem(const char* what, const std::function<int(BIO*)>& write) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return OpenSslError(what);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

Result<KeyPtr> ReadKey(const std::string& pem) {
  KeyPtr key(PEM_read_bio_PrivateKey(ReadPem(pem).get(), nullptr, nullptr, nullptr));
  if (!key) return OpenSslError("read private key");
  return key;
}

Result<CertificatePtr> ReadCertificate(const std::string& pem) {
  CertificatePtr certificate(PEM_read_bio_X509(ReadPem(pem).get(), nullptr, nullptr, nullptr));
  if (!certificate) return OpenSslError("read certificate");
  return certificate;
}

std::optional<std::string> TextOf(const ASN1_STRING* from) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, from);
  if (size < 0) return std::nullopt;
  std::string out(reinterpret_cast<char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  if (out.find('\0') != std::string::npos) return std::nullopt;
  return out;
}

Result<std::vector<std::string>> EntriesOf(X509_NAME* name, int kind) {
  std::vector<std::string> out;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, kind, at)) >= 0;) {
    std::optional<std::string> text = TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (!text) return Error(Code::kBadRequest, "a name in the subject cannot be read");
    out.push_back(std::move(*text));
  }
  return out;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  if (value.empty()) return true;
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  bytes[0] &= 0x7f;  // never negative
  BignumPtr number(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  NumberPtr serial(number ? BN_to_ASN1_INTEGER(number.get(), nullptr) : nullptr);
  return serial && X509_set_serialNumber(certificate, serial.get()) == 1;
}

const EVP_MD* DigestFor(EVP_PKEY* key) {
  const bool own = EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448");
  return own ? nullptr : EVP_sha256();
}

}  // namespace keelson::crypto
