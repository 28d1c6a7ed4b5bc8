#include "controlplane/etcd/pki.h"

#include <ctime>
#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "lib/base/file.h"

namespace keelson::etcd {
namespace {

constexpr long kLifetimeSeconds = 10L * 365 * 24 * 3600;
constexpr long kRenewSeconds = 90L * 24 * 3600;

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

struct Identity {
  CertificatePtr certificate;
  KeyPtr key;
};

Error SslError(std::string_view what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  return Error(Code::kInternal, std::string(what) + ": " + text);
}

Result<> AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
    return SslError("certificate extension");
  return {};
}

// Signed by `ca`; self-signed when that is null.
Result<Identity> Issue(const char* common_name, const char* usages, const char* names, const Identity* ca) {
  Identity made{CertificatePtr(X509_new()), KeyPtr(EVP_EC_gen("P-256"))};
  if (!made.certificate || !made.key) return SslError("make key");
  X509* certificate = made.certificate.get();
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return SslError("random serial");
  serial[0] &= 0x7f;
  std::unique_ptr<BIGNUM, Freer<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
  X509_set_version(certificate, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -300);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kLifetimeSeconds);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  X509* issuer = ca ? ca->certificate.get() : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_basic_constraints,
                               ca ? "critical,CA:FALSE" : "critical,CA:TRUE"));
  RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_key_usage,
                               ca ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_subject_key_identifier, "hash"));
  if (ca) RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid"));
  if (usages) RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_ext_key_usage, usages));
  if (names) RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_subject_alt_name, names));
  if (X509_sign(certificate, ca ? ca->key.get() : made.key.get(), EVP_sha256()) == 0) return SslError("sign");
  return made;
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

Result<> Save(const Identity& identity, const std::string& stem) {
  BioPtr certificate(BIO_new(BIO_s_mem())), key(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate.get(), identity.certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key.get(), identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return SslError("write PEM");
  // Write the key first: a certificate without its key would look complete.
  RETURN_IF_ERROR(WriteFileAtomic(stem + ".key", Contents(key.get()), 0600));
  return WriteFileAtomic(stem + ".crt", Contents(certificate.get()), 0644);
}

// Null members when nothing usable exists.
Identity Load(const std::string& stem) {
  Identity none, loaded;
  Result<std::string> certificate = ReadFile(stem + ".crt"), key = ReadFile(stem + ".key");
  if (!certificate || !key) return none;
  BioPtr certificate_bio(BIO_new_mem_buf(certificate->data(), static_cast<int>(certificate->size())));
  BioPtr key_bio(BIO_new_mem_buf(key->data(), static_cast<int>(key->size())));
  loaded.certificate.reset(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
  loaded.key.reset(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!loaded.certificate || !loaded.key) return none;
  time_t soon = std::time(nullptr) + kRenewSeconds;
  if (X509_check_private_key(loaded.certificate.get(), loaded.key.get()) != 1) return none;
  if (X509_cmp_time(X509_get0_notAfter(loaded.certificate.get()), &soon) <= 0) return none;
  return loaded;
}

Result<> EnsureLeaf(const std::string& stem, const char* name, const char* usages, const char* names,
                    const Identity& ca) {
  Identity leaf = Load(stem);
  if (leaf.certificate && X509_verify(leaf.certificate.get(), ca.key.get()) == 1) return {};
  ERR_clear_error();
  ASSIGN_OR_RETURN(leaf, Issue(name, usages, names, &ca));
  return Save(leaf, stem);
}

}  // namespace

Result<Pki> EnsurePki(const std::string& dir) {
  RETURN_IF_ERROR(MakeDirs(dir, 0700));
  Identity ca = Load(dir + "/ca");
  if (!ca.certificate) {
    ASSIGN_OR_RETURN(ca, Issue("keelson-etcd-ca", nullptr, nullptr, nullptr));
    RETURN_IF_ERROR(Save(ca, dir + "/ca"));
  }
  RETURN_IF_ERROR(
      EnsureLeaf(dir + "/server", "etcd", "serverAuth,clientAuth", "DNS:localhost,IP:127.0.0.1,IP:::1", ca));
  RETURN_IF_ERROR(EnsureLeaf(dir + "/client", "kube-apiserver", "clientAuth", nullptr, ca));
  return Pki{dir + "/ca.crt", dir + "/server.crt", dir + "/server.key", dir + "/client.crt",
             dir + "/client.key"};
}

}  // namespace keelson::etcd
