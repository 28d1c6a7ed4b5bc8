#include <gtest/gtest.h>
#include <stdlib.h>

#include "controlplane/controllers/certificates/approver.h"
#include "controlplane/controllers/certificates/cleaner.h"
#include "controlplane/controllers/certificates/pod_request_cleaner.h"
#include "controlplane/controllers/certificates/signer.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/crypto/certificates.h"

namespace keelson::controllers {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::vector<std::string> kClientUsages = {"digital signature", "client auth"};

CertificateSigningRequest RequestFor(const char* signer, const crypto::CertificateSubject& subject,
                                     const std::vector<std::string>& usages) {
  CertificateSigningRequest out;
  out.mutable_metadata()->set_name("csr-1");
  out.mutable_spec()->set_signer_name(signer);
  out.mutable_spec()->set_request(*crypto::NewCertificateRequest(*crypto::NewPrivateKey(), subject));
  for (const std::string& usage : usages) out.mutable_spec()->add_usages(usage);
  return out;
}

CertificateSigningRequest OfKubelet(const std::string& username) {
  CertificateSigningRequest out =
      RequestFor(kKubeletClientSigner, {"system:node:n1", {"system:nodes"}, {}, {}}, kClientUsages);
  out.mutable_spec()->set_username(username);
  return out;
}

TEST(CertificateRequests, WhatSignersAskFor) {
  const std::vector<std::string> serving = {"digital signature", "server auth"};
  const crypto::CertificateSubject node = {"system:node:n1", {"system:nodes"}, {}, {}};
  auto with_names = node;
  with_names.dns_names = {"n1"};
  with_names.ip_addresses = {"10.0.0.1"};
  struct {
    const char* signer;
    crypto::CertificateSubject subject;
    std::vector<std::string> usages;
    std::string problem;
  } cases[] = {
      {kKubeletClientSigner, node, kClientUsages, ""},
      {kKubeletClientSigner, node, {"key encipherment", "digital signature", "client auth"}, ""},
      {kKubeletClientSigner,
       node,
       {"client auth"},
       "usages did not match [client auth digital signature key encipherment]"},
      {kKubeletClientSigner, node, serving,
       "usages did not match [client auth digital signature key encipherment]"},
      {kKubeletClientSigner,
       {"system:node:n1", {"system:nodes", "system:masters"}, {}, {}},
       kClientUsages,
       "subject organization is not system:nodes"},
      {kKubeletClientSigner,
       {"n1", {"system:nodes"}, {}, {}},
       kClientUsages,
       "subject common name does not begin with system:node:"},
      {kKubeletClientSigner, with_names, kClientUsages, "DNS subjectAltNames are not allowed"},
      {kKubeletServingSigner, with_names, serving, ""},
      {kKubeletServingSigner, node, serving, "DNS or IP subjectAltName is required"},
      {kKubeletServingSigner, with_names, kClientUsages,
       "usages did not match [digital signature key encipherment server auth]"},
      {kApiServerClientSigner, {"jane", {"devs"}, {}, {}}, {"client auth"}, ""},
      {kApiServerClientSigner,
       {"jane", {}, {}, {}},
       {"digital signature"},
       "missing required usage for client certificate: client auth"},
      {kApiServerClientSigner,
       {"jane", {}, {}, {}},
       {"client auth", "cert sign"},
       "invalid usage for client certificate: cert sign"},
      {kLegacyUnknownSigner, {"any", {}, {}, {}}, {"server auth"}, ""},
  };
  for (const auto& one : cases) {
    CertificateSigningRequest request = RequestFor(one.signer, one.subject, one.usages);
    auto asked = crypto::InspectRequest(request.spec().request());
    ASSERT_TRUE(asked);
    auto checked = CheckForSigner(one.signer, *asked, request.spec().usages());
    EXPECT_EQ(checked ? "" : checked.error().message(), one.problem) << one.signer;
  }
}

TEST(CertificateRequests, HowLongTheyAreGood) {
  const WallTime now = WallTime(hours(1'000'000));
  struct {
    int asked;
    seconds most, life;
  } cases[] = {{0, hours(24 * 365), hours(24 * 365) - seconds(300)},
               {3600, hours(24), seconds(3600)},
               {1, hours(24), seconds(600)},
               {1'000'000, hours(24), hours(24) - seconds(300)}};
  for (const auto& one : cases) {
    CertificateSigningRequest request;
    if (one.asked) request.mutable_spec()->set_expiration_seconds(one.asked);
    crypto::CertificateTerms terms = TermsOf(request, one.most, now);
    EXPECT_EQ(terms.not_before, now - seconds(300));
    EXPECT_EQ(terms.not_after, now + one.life) << one.asked;
  }
}

// Answers access reviews: allows only `subresource`. Records the requests.
std::vector<std::string>* AllowOnly(client::FakeApi& api, const std::string& subresource,
                                    std::vector<std::string>& asked) {
  api.SetInterceptor(
      [&asked, subresource](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.target.find("/subjectaccessreviews") == std::string::npos) return std::nullopt;
        authorizationv1::SubjectAccessReview review;
        if (!api::DecodeProtobuf(request.body, review)) return std::nullopt;
        const auto& what = review.spec().resource_attributes();
        asked.push_back(review.spec().user() + " " + what.verb() + " " + what.resource() + "/" +
                        what.subresource());
        review.mutable_status()->set_allowed(what.subresource() == subresource);
        return client::FakeApi::Answer(review, 201);
      });
  return &asked;
}

TEST(CertificateApprover, ApprovesWhoeverMay) {
  const std::string self = "system:node:n1 create certificatesigningrequests/selfnodeclient",
                    node = " create certificatesigningrequests/nodeclient";
  struct {
    const char *user, *allowed, *message;
    std::vector<std::string> asked;
  } cases[] = {
      {"system:node:n1",
       "selfnodeclient",
       "Auto approving self kubelet client certificate after SubjectAccessReview.",
       {self}},
      {"system:bootstrap:abcdef",
       "nodeclient",
       "Auto approving kubelet client certificate after SubjectAccessReview.",
       {"system:bootstrap:abcdef" + node}},
      {"system:node:n2", "selfnodeclient", nullptr, {"system:node:n2" + node}},
      {"system:node:n1", "", nullptr, {self, "system:node:n1" + node}},
  };
  for (const auto& one : cases) {
    TestCluster cluster;
    std::vector<std::string> asked;
    AllowOnly(*cluster.fake, one.allowed, asked);
    auto& approver = cluster.Make<CertificateApprover>();
    ASSERT_TRUE(cluster.api.Create(OfKubelet(one.user)));
    cluster.Start();
    cluster.Drain({&approver});
    EXPECT_EQ(asked, one.asked);
    auto stored = cluster.Get<CertificateSigningRequest>("", "csr-1");
    ASSERT_EQ(stored.status().conditions_size(), one.message ? 1 : 0) << one.user;
    EXPECT_EQ(cluster.errors.empty(), one.message != nullptr);
    if (!one.message) continue;
    EXPECT_EQ(stored.status().conditions(0).type(), "Approved");
    EXPECT_EQ(stored.status().conditions(0).reason(), "AutoApproved");
    EXPECT_EQ(stored.status().conditions(0).message(), one.message);
  }
}

TEST(CertificateApprover, LeavesTheRestAlone) {
  TestCluster cluster;
  std::vector<std::string> asked;
  AllowOnly(*cluster.fake, "nodeclient", asked);
  auto& approver = cluster.Make<CertificateApprover>();
  ASSERT_TRUE(
      cluster.api.Create(RequestFor(kKubeletServingSigner, {"system:node:n1", {"system:nodes"}, {"n1"}, {}},
                                    {"digital signature", "server auth"})));
  cluster.Start();
  cluster.Drain({&approver});
  EXPECT_TRUE(asked.empty());
}

class CertificateSignerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/csrsigning.XXXXXX";
    dir_ = mkdtemp(name);
    key_ = *crypto::NewPrivateKey();
    ASSERT_TRUE(WriteFile(dir_ + "/ca.key", key_));
    ASSERT_TRUE(
        WriteFile(dir_ + "/ca.crt", *crypto::NewSelfSigned(key_, {"ca", {}, {}, {}}, hours(24 * 365 * 20))));
    signing_.authorities[kKubeletClientSigner] = {dir_ + "/ca.crt", dir_ + "/ca.key"};
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }

  CertificateSigningRequest SignedFrom(CertificateSigningRequest request) {
    TestCluster cluster;
    auto& signer = cluster.Make<CertificateSigner>(signing_);
    cluster.fake->Put(request);
    cluster.Start();
    cluster.Drain({&signer});
    EXPECT_TRUE(cluster.errors.empty());
    return cluster.Get<CertificateSigningRequest>("", "csr-1");
  }

  std::string dir_, key_;
  CertificateSigning signing_;
};

TEST_F(CertificateSignerTest, SignsWhatIsApproved) {
  CertificateSigningRequest request = OfKubelet("system:node:n1");
  EXPECT_TRUE(SignedFrom(request).status().certificate().empty());
  AddCondition(request, "Approved", "ByHand", "", WallTime());
  auto certificate = crypto::InspectCertificate(SignedFrom(request).status().certificate());
  ASSERT_TRUE(certificate);
  EXPECT_EQ(certificate->subject.common_name, "system:node:n1");
  request.mutable_spec()->set_signer_name("example.com/other");
  EXPECT_TRUE(SignedFrom(request).status().certificate().empty());
}

TEST_F(CertificateSignerTest, SaysWhyItDoesNot) {
  CertificateSigningRequest request =
      RequestFor(kKubeletClientSigner, {"system:node:n1", {"system:masters"}, {}, {}}, kClientUsages);
  AddCondition(request, "Approved", "ByHand", "", WallTime());
  auto answered = SignedFrom(request);
  EXPECT_TRUE(answered.status().certificate().empty());
  const auto* failed = ConditionOf(answered, "Failed");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason(), "SignerValidationFailure");
  EXPECT_EQ(failed->message(), "subject organization is not system:nodes");
}

TEST(CertificateCleaner, RemovesWhatIsOver) {
  const WallTime now = WallTime(hours(1'000'000));
  struct {
    const char* condition;  // null: undecided
    hours age;
    bool over;
  } cases[] = {{nullptr, hours(23), false},  {nullptr, hours(25), true},  {"Approved", hours(0), false},
               {"Approved", hours(2), true}, {"Denied", hours(0), false}, {"Denied", hours(2), true},
               {"Failed", hours(2), true}};
  for (const auto& one : cases) {
    CertificateSigningRequest request = OfKubelet("x");
    *request.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(now - one.age);
    if (one.condition) AddCondition(request, one.condition, "", "", now - one.age);
    EXPECT_EQ(IsOver(request, now), one.over) << (one.condition ? one.condition : "pending");
  }
}

TEST(CertificateCleaner, LooksEveryHour) {
  TestCluster cluster;
  auto& cleaner = cluster.Make<CertificateCleaner>();
  CertificateSigningRequest request = OfKubelet("x");
  AddCondition(request, "Denied", "", "", cluster.clock.Now());
  cluster.fake->Put(request);
  cluster.Start();
  cluster.Drain({&cleaner});
  EXPECT_EQ(cluster.List<CertificateSigningRequest>().size(), 1u);
  cluster.Advance(hours(1) + seconds(1), {&cleaner});
  cluster.Advance(hours(1) + seconds(1), {&cleaner});
  EXPECT_TRUE(cluster.List<CertificateSigningRequest>().empty());
}

TEST(PodCertificateRequestCleaner, RemovesWhatIsAQuarterOfAnHourOld) {
  TestCluster cluster;
  auto& cleaner = cluster.Make<PodCertificateRequestCleaner>();
  PodCertificateRequest request;
  request.mutable_metadata()->set_name("old");
  request.mutable_metadata()->set_namespace_("default");
  ASSERT_TRUE(cluster.api.Create(request));
  cluster.Start();
  cluster.Drain({&cleaner});
  cluster.Advance(std::chrono::minutes(10), {&cleaner});
  request.mutable_metadata()->set_name("new");
  ASSERT_TRUE(cluster.api.Create(request));
  cluster.Drain({&cleaner});
  EXPECT_EQ(cluster.List<PodCertificateRequest>().size(), 2u);
  cluster.Advance(std::chrono::minutes(5), {&cleaner});
  ASSERT_EQ(cluster.List<PodCertificateRequest>().size(), 1u);
  EXPECT_EQ(cluster.List<PodCertificateRequest>()[0].metadata().name(), "new");
  cluster.Advance(std::chrono::minutes(10), {&cleaner});
  EXPECT_TRUE(cluster.List<PodCertificateRequest>().empty());
  EXPECT_TRUE(cluster.errors.empty());
}

}  // namespace
}  // namespace keelson::controllers
