#include "lib/crypto/public_key.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

using Kind = PublicKey::Kind;

std::string DerOfKey(EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return out;
}

std::string DerOfRequest(const std::string& pem) {
  RequestPtr request(PEM_read_bio_X509_REQ(ReadPem(pem).get(), nullptr, nullptr, nullptr));
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_REQ(request.get(), &bytes);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return out;
}

std::string DerOfCertificate(const std::string& pem) {
  CertificatePtr certificate = *ReadCertificate(pem);
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate.get(), &bytes);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return out;
}

std::string Sign(EVP_PKEY* key, std::string_view data) {
  DigestPtr context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* key_context = nullptr;
  const bool edwards = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
  EVP_DigestSignInit(context.get(), &key_context, edwards ? nullptr : EVP_sha256(), nullptr, key);
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA) {
    EVP_PKEY_CTX_set_rsa_padding(key_context, RSA_PKCS1_PSS_PADDING);
  }
  std::string out(1024, '\0');
  size_t size = out.size();
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size, Bytes(data),
                 data.size());
  out.resize(size);
  return out;
}

TEST(PublicKey, KindsAndSignatures) {
  const struct {
    std::string_view name;
    EVP_PKEY* made;
    Kind kind;
    int bits;
    std::string curve;
  } cases[] = {
      {"RSA", EVP_RSA_gen(3072), Kind::kRsa, 3072, ""},
      {"P-384", EVP_EC_gen("P-384"), Kind::kEcdsa, 0, "P-384"},
      {"P-224", EVP_EC_gen("P-224"), Kind::kEcdsa, 0, "secp224r1"},
      {"Ed25519", EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), Kind::kEd25519, 0, ""},
  };
  for (const auto& c : cases) {
    const KeyPtr key(c.made);
    auto read = PublicKey::FromDer(DerOfKey(key.get()));
    ASSERT_TRUE(read) << c.name;
    EXPECT_EQ(read->kind(), c.kind) << c.name;
    if (c.bits) {
      EXPECT_EQ(read->bits(), c.bits);
    }
    if (!c.curve.empty()) {
      EXPECT_EQ(read->curve(), c.curve);
    }
    const std::string signature = Sign(key.get(), "uid-1");
    EXPECT_TRUE(read->HasSigned("uid-1", signature)) << c.name;
    EXPECT_FALSE(read->HasSigned("uid-2", signature)) << c.name;
    EXPECT_FALSE(read->HasSigned("uid-1", "")) << c.name;
  }
  const KeyPtr foreign(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED448"));
  auto other = PublicKey::FromDer(DerOfKey(foreign.get()));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->kind(), Kind::kOther);
  EXPECT_FALSE(other->HasSigned("uid-1", "x"));
}

TEST(PublicKey, RequestsMustBeSignedWithTheirOwnKey) {
  const std::string key = *NewPrivateKey();
  std::string der = DerOfRequest(*NewCertificateRequest(key, {}));
  auto of_request = PublicKey::OfRequest(der);
  ASSERT_TRUE(of_request) << of_request.error().message();
  EXPECT_TRUE(*of_request == *PublicKey::FromDer(DerOfKey(ReadKey(key)->get())));
  EXPECT_EQ(PublicKey::OfRequest(der + "x").error().code(), Code::kBadRequest);
  EXPECT_EQ(PublicKey::OfRequest("").error().code(), Code::kBadRequest);
  EXPECT_EQ(PublicKey::FromDer("no key").error().code(), Code::kBadRequest);
  der.back() = static_cast<char>(der.back() ^ 1);
  EXPECT_EQ(PublicKey::OfRequest(der).error().code(), Code::kInvalid);
}

TEST(PublicKey, OfACertificate) {
  const std::string authority_key = *NewPrivateKey(), key = *NewPrivateKey("ED25519");
  auto authority = CertificateAuthority::FromPem(
      *NewSelfSigned(authority_key, {"ca", {}, {}, {}}, std::chrono::hours(48)), authority_key);
  ASSERT_TRUE(authority);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string request = *NewCertificateRequest(key, {"web", {}, {"web.example"}, {}});
  auto pem = authority->Sign(request, {now, now + std::chrono::hours(2), {"client auth"}});
  ASSERT_TRUE(pem);
  auto issued = IssuedCertificate::FromDer(DerOfCertificate(*pem));
  ASSERT_TRUE(issued) << issued.error().message();
  EXPECT_EQ(issued->not_before, now);
  EXPECT_EQ(issued->not_after, now + std::chrono::hours(2));
  EXPECT_EQ(issued->dns_names, std::vector<std::string>{"web.example"});
  EXPECT_TRUE(issued->key == *PublicKey::OfRequest(DerOfRequest(request)));
  EXPECT_FALSE(issued->key == *PublicKey::FromDer(DerOfKey(ReadKey(authority_key)->get())));
  EXPECT_FALSE(IssuedCertificate::FromDer("no certificate"));
}

}  // namespace
}  // namespace keelson::crypto
