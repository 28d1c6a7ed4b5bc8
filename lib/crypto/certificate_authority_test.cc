#include "lib/crypto/certificate_authority.h"

#include <gtest/gtest.h>

#include "lib/crypto/certificates.h"

namespace keelson::crypto {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;

struct Authority {
  std::string key_pem, certificate_pem;
  explicit Authority(hours life = hours(48)) {
    key_pem = *NewPrivateKey();
    certificate_pem = *NewSelfSigned(key_pem, {"ca", {}, {}, {}}, life);
  }
  CertificateAuthority Load() const { return *CertificateAuthority::FromPem(certificate_pem, key_pem); }
};

CertificateTerms Terms(std::vector<std::string> usages, hours life = hours(1)) {
  return {system_clock::now() - std::chrono::minutes(5), system_clock::now() + life, std::move(usages)};
}

TEST(CertificateAuthority, ReadsWhatIsAskedFor) {
  std::string key = *NewPrivateKey();
  auto request = NewCertificateRequest(
      key, {"system:node:n1", {"system:nodes", "more"}, {"n1", "n1.example"}, {"10.0.0.1", "fd00::1"}});
  ASSERT_TRUE(request);
  auto asked = InspectRequest(*request);
  ASSERT_TRUE(asked) << asked.error().message();
  EXPECT_EQ(asked->common_name, "system:node:n1");
  EXPECT_EQ(asked->organizations, (std::vector<std::string>{"system:nodes", "more"}));
  EXPECT_EQ(asked->dns_names, (std::vector<std::string>{"n1", "n1.example"}));
  EXPECT_EQ(asked->ip_addresses, (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
  EXPECT_TRUE(asked->emails.empty());
  EXPECT_TRUE(asked->uris.empty());
}

TEST(CertificateAuthority, KeysOfEachKindMakeRequestsWithoutNames) {
  for (const char* kind : {"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}) {
    auto key = NewPrivateKey(kind);
    ASSERT_TRUE(key) << kind;
    EXPECT_EQ(key->rfind("-----BEGIN PRIVATE KEY-----\n", 0), 0u) << kind;
    auto request = NewCertificateRequest(*key, {});
    ASSERT_TRUE(request) << kind << ": " << request.error().message();
    auto asked = InspectRequest(*request);
    ASSERT_TRUE(asked) << kind << ": " << asked.error().message();
    EXPECT_TRUE(asked->common_name.empty() && asked->organizations.empty() && asked->dns_names.empty());
  }
  EXPECT_EQ(NewPrivateKey("DSA").error().message(), "unknown key type \"DSA\"");
}

TEST(CertificateAuthority, SignsForTheKeyAndSubjectOfTheRequest) {
  Authority authority;
  std::string key = *NewPrivateKey();
  std::string request = *NewCertificateRequest(key, {"system:node:n1", {"system:nodes"}, {"n1"}, {}});
  auto certificate = authority.Load().Sign(request, Terms({"digital signature", "client auth"}));
  ASSERT_TRUE(certificate) << certificate.error().message();
  EXPECT_TRUE(BelongTogether(*certificate, key));
  auto info = InspectCertificate(*certificate);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->subject.common_name, "system:node:n1");
  EXPECT_EQ(info->subject.organizations, std::vector<std::string>{"system:nodes"});
  EXPECT_LE(info->not_before, system_clock::now());
  EXPECT_LE(info->not_after, system_clock::now() + hours(1));
}

TEST(CertificateAuthority, CertificatesMayLastForCenturies) {
  auto info = InspectCertificate(Authority(hours(24 * 365 * 300)).certificate_pem);
  ASSERT_TRUE(info);
  EXPECT_GT(info->not_after, system_clock::now());
}

TEST(CertificateAuthority, NothingOutlivesTheAuthority) {
  Authority authority(hours(2));
  std::string request = *NewCertificateRequest(*NewPrivateKey(), {"x", {}, {}, {}});
  auto certificate = authority.Load().Sign(request, Terms({"client auth"}, hours(1000)));
  ASSERT_TRUE(certificate);
  EXPECT_EQ(InspectCertificate(*certificate)->not_after,
            InspectCertificate(authority.certificate_pem)->not_after);
}

TEST(CertificateAuthority, RefusesBadInput) {
  Authority authority, other;
  std::string request = *NewCertificateRequest(*NewPrivateKey(), {"x", {}, {}, {}});
  auto unknown = authority.Load().Sign(request, Terms({"client auth", "world domination"}));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(), "unrecognized usage values: [world domination]");
  EXPECT_FALSE(authority.Load().Sign("no request", Terms({"client auth"})));
  EXPECT_FALSE(InspectRequest(authority.certificate_pem));
  EXPECT_TRUE(
      CertificateAuthority::FromPem(authority.certificate_pem, other.key_pem).error().Is(Code::kInvalid));
  EXPECT_FALSE(CertificateAuthority::FromPem("", authority.key_pem));
  // One bit of the signature turned: the last base64 letters stand for it.
  std::string forged = request;
  size_t at = forged.find("\n-----END") - 6;
  forged[at] = forged[at] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(InspectRequest(forged));
}

TEST(CertificateAuthority, MakesACertificateOfItsOwn) {
  const std::string key = *NewPrivateKey();
  auto certificate = NewAuthorityCertificate(key, "own-ca", hours(24));
  ASSERT_TRUE(certificate) << certificate.error().message();
  EXPECT_TRUE(BelongTogether(*certificate, key));
  auto info = InspectCertificate(*certificate);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->subject.common_name, "own-ca");
  EXPECT_LT(info->not_before, system_clock::now());
  EXPECT_GT(info->not_after, system_clock::now() + hours(23));
  EXPECT_LT(info->not_after, system_clock::now() + hours(25));
  EXPECT_EQ(NewAuthorityCertificate("no key", "own-ca", hours(24)).error().code(), Code::kInvalid);

  auto authority = CertificateAuthority::FromPem(*certificate, key);
  ASSERT_TRUE(authority);
  const std::string leaf = *authority->Sign(*NewCertificateRequest(*NewPrivateKey(), {"leaf", {}, {}, {}}),
                                            Terms({"digital signature"}));
  EXPECT_TRUE(authority->HasSigned(leaf));
  EXPECT_TRUE(authority->HasSigned(*certificate));
  EXPECT_FALSE(Authority().Load().HasSigned(leaf));
  EXPECT_FALSE(authority->HasSigned("no certificate"));
}

TEST(CertificateAuthority, TellsTheSubjectOfARequestInDer) {
  EXPECT_EQ(SubjectOfRequest("no request").error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson::crypto
