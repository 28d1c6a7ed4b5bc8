#include "lib/crypto/certificate_checks.h"

#include <gtest/gtest.h>

#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"

namespace keelson::crypto {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;

struct Pair {
  std::string key, certificate;
};

Pair Authority(const std::string& name, const char* kind = "ECDSAP256") {
  Pair out;
  out.key = *NewPrivateKey(kind);
  out.certificate = *NewAuthorityCertificate(out.key, name, hours(1));
  return out;
}

Pair Leaf(const Pair& authority) {
  Pair out;
  out.key = *NewPrivateKey();
  const CertificateTerms terms{system_clock::now(), system_clock::now() + hours(1), {"client auth"}};
  out.certificate = *CertificateAuthority::FromPem(authority.certificate, authority.key)
                         ->Sign(*NewCertificateRequest(out.key, {"user", {}, {}, {}}), terms);
  return out;
}

TEST(CertificateChecks, TellAuthoritiesFromOthers) {
  const Pair authority = Authority("kubernetes");
  EXPECT_TRUE(IsAuthority(authority.certificate));
  EXPECT_FALSE(IsAuthority(Leaf(authority).certificate));
  EXPECT_FALSE(IsAuthority("text"));
  const auto info = InspectCertificate(authority.certificate);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->subject.dns_names, std::vector<std::string>{"kubernetes"});
}

TEST(CertificateChecks, BundlesShareACertificate) {
  const std::string a = Authority("a").certificate, b = Authority("a").certificate,
                    c = Authority("c").certificate;
  EXPECT_TRUE(HaveCertificateInCommon(a, a));
  EXPECT_TRUE(HaveCertificateInCommon(a + b, c + b));
  EXPECT_FALSE(HaveCertificateInCommon(a + c, b)) << "the same name, another key";
  EXPECT_FALSE(HaveCertificateInCommon(a, ""));
  EXPECT_FALSE(HaveCertificateInCommon("text", "text"));
}

TEST(CertificateChecks, OnlyTheIssuersKeyCounts) {
  for (const char* kind : {"RSA2048", "ECDSAP384"}) {
    const Pair authority = Authority("kubernetes", kind), other = Authority("kubernetes", kind);
    const Pair leaf = Leaf(authority);
    EXPECT_TRUE(IsSignedBy(leaf.certificate, authority.certificate)) << kind;
    EXPECT_TRUE(IsSignedBy(authority.certificate, authority.certificate)) << kind;
    EXPECT_FALSE(IsSignedBy(leaf.certificate, other.certificate)) << "the same name, another key";
    EXPECT_FALSE(IsSignedBy(leaf.certificate, leaf.certificate)) << kind;
    EXPECT_FALSE(IsSignedBy("", authority.certificate));
    EXPECT_FALSE(IsSignedBy(leaf.certificate, ""));
  }
}

TEST(CertificateChecks, HashesThePublicKeyAlone) {
  const Pair authority = Authority("kubernetes");
  const auto hash = PublicKeySha256(authority.certificate);
  ASSERT_TRUE(hash);
  EXPECT_EQ(hash->size(), 64u);
  EXPECT_EQ(*PublicKeySha256(*NewAuthorityCertificate(authority.key, "another", hours(2))), *hash);
  EXPECT_NE(*PublicKeySha256(Authority("kubernetes").certificate), *hash);
  EXPECT_FALSE(PublicKeySha256(authority.key));
}

TEST(CertificateChecks, WritesPublicKeys) {
  const std::string key = *NewPrivateKey("RSA2048");
  const auto pem = PublicKeyPem(key);
  ASSERT_TRUE(pem);
  EXPECT_TRUE(pem->starts_with("-----BEGIN PUBLIC KEY-----\n"));
  EXPECT_EQ(*PublicKeyPem(key), *pem);
  EXPECT_FALSE(PublicKeyPem(*pem)) << "a public key is no private one";
}

}  // namespace
}  // namespace keelson::crypto
