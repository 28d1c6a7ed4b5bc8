#include "lib/crypto/testing/test_pki.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "lib/base/file.h"

namespace keelson::crypto {
namespace {

using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using Cert = std::unique_ptr<X509, void (*)(X509*)>;

Key NewKey() { return Key(EVP_EC_gen("P-256"), EVP_PKEY_free); }

std::string ToPem(const auto& write) {
  std::unique_ptr<BIO, void (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free_all);
  write(bio.get());
  char* data = nullptr;
  long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

void Extend(X509* cert, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

void SetTimes(X509* cert, std::chrono::seconds begin, std::chrono::seconds end) {
  X509_gmtime_adj(X509_getm_notBefore(cert), begin.count());
  X509_gmtime_adj(X509_getm_notAfter(cert), end.count());
}

Cert NewCert(const std::string& name, const std::vector<std::string>& organizations, EVP_PKEY* key,
             X509* issuer, EVP_PKEY* issuer_key, const char* usage, const char* names,
             const std::vector<SubjectAttribute>& more = {}) {
  Cert cert(X509_new(), X509_free);
  X509_set_version(cert.get(), 2);
  uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert.get()), serial);
  SetTimes(cert.get(), std::chrono::minutes(-1), std::chrono::hours(24));
  X509_set_pubkey(cert.get(), key);
  X509_NAME* subject = X509_get_subject_name(cert.get());
  auto add = [&](const char* field, const std::string& value) {
    X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
  };
  for (const std::string& organization : organizations) add("O", organization);
  add("CN", name);
  for (const SubjectAttribute& one : more) {
    X509_NAME_add_entry_by_txt(subject, one.oid.c_str(), one.type,
                               reinterpret_cast<const unsigned char*>(one.value.c_str()),
                               static_cast<int>(one.value.size()), -1, 0);
  }
  X509* signer = issuer ? issuer : cert.get();
  X509_set_issuer_name(cert.get(), X509_get_subject_name(signer));
  if (issuer) {
    Extend(cert.get(), signer, NID_ext_key_usage, usage);
    if (names) Extend(cert.get(), signer, NID_subject_alt_name, names);
  } else {
    Extend(cert.get(), signer, NID_basic_constraints, "critical,CA:TRUE");
    Extend(cert.get(), signer, NID_key_usage, "critical,keyCertSign,cRLSign");
  }
  X509_sign(cert.get(), issuer_key, EVP_sha256());
  return cert;
}

std::string CertPem(X509* cert) {
  return ToPem([&](BIO* bio) { PEM_write_bio_X509(bio, cert); });
}
std::string KeyPem(EVP_PKEY* key) {
  return ToPem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

}  // namespace

struct TestPki::Impl {
  Key key = NewKey();
  Cert cert = NewCert("test-ca", {}, key.get(), nullptr, key.get(), nullptr, nullptr);
  std::string pem = CertPem(cert.get());
};

TestPki::TestPki() : impl_(std::make_unique<Impl>()) {
  char name[] = "/tmp/test_pki.XXXXXX";
  dir_ = mkdtemp(name);
  if (!WriteFile(ca_file(), impl_->pem)) abort();
  RenewServer();
}

TestPki::~TestPki() {
  if (!RemoveTree(dir_)) abort();
}

const std::string& TestPki::ca_pem() const { return impl_->pem; }

TestCertificate TestPki::Client(const std::string& common_name, const std::vector<std::string>& organizations,
                                std::chrono::seconds begin, std::chrono::seconds end,
                                const std::vector<SubjectAttribute>& more) const {
  Key key = NewKey();
  Cert cert = NewCert(common_name, organizations, key.get(), impl_->cert.get(), impl_->key.get(),
                      "clientAuth", "DNS:client.example,URI:spiffe://example/client", more);
  SetTimes(cert.get(), begin, end);
  X509_sign(cert.get(), impl_->key.get(), EVP_sha256());
  return {CertPem(cert.get()), KeyPem(key.get())};
}

std::string TestPki::Sign(const std::string& request_pem) const {
  std::unique_ptr<BIO, void (*)(BIO*)> bio(
      BIO_new_mem_buf(request_pem.data(), static_cast<int>(request_pem.size())), BIO_free_all);
  std::unique_ptr<X509_REQ, void (*)(X509_REQ*)> request(
      PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr), X509_REQ_free);
  if (!request) abort();
  Cert cert = NewCert("", {}, X509_REQ_get0_pubkey(request.get()), impl_->cert.get(), impl_->key.get(),
                      "clientAuth", nullptr);
  X509_set_subject_name(cert.get(), X509_REQ_get_subject_name(request.get()));
  X509_sign(cert.get(), impl_->key.get(), EVP_sha256());
  return CertPem(cert.get());
}

void TestPki::RenewServer() {
  Key key = NewKey();
  Cert cert = NewCert("test-server", {}, key.get(), impl_->cert.get(), impl_->key.get(), "serverAuth",
                      "IP:127.0.0.1,IP:::1,DNS:localhost,DNS:*.default.svc");
  if (!WriteFile(server_cert_file(), CertPem(cert.get())) ||
      !WriteFile(server_key_file(), KeyPem(key.get()))) {
    abort();
  }
}

}  // namespace keelson::crypto
