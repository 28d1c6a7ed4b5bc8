#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/serviceaccounttokens/cleaner.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/base/base64.h"

namespace keelson::controllers {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

corev1::ServiceAccount Account(const std::string& name, const std::vector<std::string>& secrets = {}) {
  corev1::ServiceAccount account;
  account.mutable_metadata()->set_name(name);
  account.mutable_metadata()->set_namespace_("default");
  for (const std::string& secret : secrets) account.add_secrets()->set_name(secret);
  return account;
}

corev1::Secret TokenSecret(const std::string& name, const std::string& account) {
  corev1::Secret secret;
  secret.mutable_metadata()->set_name(name);
  secret.mutable_metadata()->set_namespace_("default");
  secret.set_type("kubernetes.io/service-account-token");
  (*secret.mutable_metadata()->mutable_annotations())[kAccountName] = account;
  return secret;
}

class TokensTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.Start();
    Drain();
  }
  void Drain() { cluster_.Drain({&controller_}); }
  corev1::Secret Secret() { return cluster_.Get<corev1::Secret>("default", "t"); }
  size_t Secrets() { return cluster_.List<corev1::Secret>().size(); }

  const crypto::SigningKey key_ = *crypto::SigningKey::GenerateRsa();
  TestCluster cluster_;
  ServiceAccountTokensController& controller_ =
      cluster_.Make<ServiceAccountTokensController>(key_, std::string("CA"));
};

TEST_F(TokensTest, SecretsAreFilledIn) {
  ASSERT_TRUE(cluster_.api.Create(Account("runner")));
  ASSERT_TRUE(cluster_.api.Create(TokenSecret("t", "runner")));
  Start();
  const corev1::Secret secret = Secret();
  EXPECT_EQ(secret.data().at("ca.crt"), "CA");
  EXPECT_EQ(secret.data().at("namespace"), "default");
  const std::string uid = cluster_.Get<corev1::ServiceAccount>("default", "runner").metadata().uid();
  EXPECT_EQ(secret.metadata().annotations().at(kAccountUid), uid);
  const std::string token = secret.data().at("token");
  const size_t first = token.find('.'), last = token.rfind('.');
  EXPECT_TRUE(key_.Verify(token.substr(0, last), *DecodeBase64(token.substr(last + 1), Base64::kRawUrl)));
  EXPECT_EQ(
      *DecodeBase64(token.substr(first + 1, last - first - 1), Base64::kRawUrl),
      R"({"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"default",)"
      R"("kubernetes.io/serviceaccount/secret.name":"t","kubernetes.io/serviceaccount/service-account.name":"runner",)"
      R"("kubernetes.io/serviceaccount/service-account.uid":")" +
          uid + R"(","sub":"system:serviceaccount:default:runner"})");
  EXPECT_THAT(*DecodeBase64(token.substr(0, first), Base64::kRawUrl),
              HasSubstr(R"({"alg":"RS256","kid":")" + key_.id()));
  // The token stays; removed fields are restored.
  corev1::Secret changed = secret;
  changed.mutable_data()->erase("namespace");
  (*changed.mutable_data())["ca.crt"] = "other";
  ASSERT_TRUE(cluster_.api.Update(changed));
  Drain();
  EXPECT_EQ(Secret().data().at("token"), token);
  EXPECT_EQ(Secret().data().at("ca.crt"), "CA");
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

TEST_F(TokensTest, WhatIsFilledInAlreadyIsLeftAlone) {
  ASSERT_TRUE(cluster_.api.Create(Account("runner")));
  corev1::Secret filled = TokenSecret("t", "runner");
  auto& data = *filled.mutable_data();
  data["ca.crt"] = "CA";
  data["namespace"] = data["token"] = "own";
  ASSERT_TRUE(cluster_.api.Create(filled));
  Start();
  EXPECT_EQ(Secret().data().at("namespace"), "own");
  EXPECT_FALSE(Secret().metadata().annotations().contains(kAccountUid));
}

TEST_F(TokensTest, SecretsGoWithTheirAccount) {
  ASSERT_TRUE(cluster_.api.Create(Account("runner")));
  ASSERT_TRUE(cluster_.api.Create(TokenSecret("t", "runner")));
  ASSERT_TRUE(cluster_.api.Create(TokenSecret("stray", "nobody")));
  Start();
  EXPECT_EQ(Secrets(), 1u) << "of no account";
  ASSERT_TRUE(cluster_.api.Delete<corev1::ServiceAccount>("default", "runner"));
  ASSERT_TRUE(cluster_.api.Create(Account("runner")));  // another one of the same name
  Drain();
  EXPECT_EQ(Secrets(), 0u);
}

TEST_F(TokensTest, AccountsForgetSecretsThatAreGone) {
  ASSERT_TRUE(cluster_.api.Create(Account("runner", {"t", "other"})));
  ASSERT_TRUE(cluster_.api.Create(TokenSecret("t", "runner")));
  Start();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Secret>("default", "t"));
  Drain();
  const auto account = cluster_.Get<corev1::ServiceAccount>("default", "runner");
  ASSERT_EQ(account.secrets_size(), 1);
  EXPECT_EQ(account.secrets(0).name(), "other");
}

TEST(LegacyTokenCleaner, WhatIsMarkedAndWhatIsRemoved) {
  const std::string old = "old", recent = "recent";
  const struct {
    const char* what;
    int tracked;  // for so many days
    bool listed, mounted;
    int hours_old;
    std::optional<std::string> used;
    std::string invalid;
    std::string outcome;  // kept, marked, removed
    bool other_account = false;
  } cases[] = {
      {"never used", 60, true, false, 2400, std::nullopt, "", "marked"},
      {"used long ago", 60, true, false, 2400, old, "", "marked"},
      {"used of late", 60, true, false, 2400, recent, "", "kept"},
      {"a use that cannot be read", 60, true, false, 2400, "once", "", "kept"},
      {"tracked of late only", 10, true, false, 2400, std::nullopt, "", "kept"},
      {"made of late", 60, true, false, 120, std::nullopt, "", "kept"},
      {"made by hand", 60, false, false, 2400, std::nullopt, "", "kept"},
      {"mounted", 60, true, true, 2400, std::nullopt, "", "kept"},
      {"marked of late", 60, true, false, 2400, std::nullopt, recent, "kept"},
      {"marked with nonsense", 60, true, false, 2400, std::nullopt, "once", "marked"},
      {"marked long ago", 60, true, false, 2400, std::nullopt, old, "removed"},
      {"marked long ago, used since", 60, true, false, 2400, recent, old, "kept"},
      {"a use without a date", 60, true, false, 2400, "", "", "kept"},
      {"made a little later in the day", 60, true, false, 30 * 24 - 1, std::nullopt, "", "kept"},
      {"made a little earlier in the day", 60, true, false, 30 * 24 + 1, std::nullopt, "", "marked"},
      {"of an account that is gone", 60, true, false, 2400, std::nullopt, "", "kept", true},
  };
  for (const auto& c : cases) {
    TestCluster cluster;
    auto days_ago = [&](int days) {
      return api::FormatTime(api::ToTime(cluster.clock.Now() - hours(24 * days))).substr(0, 10);
    };
    auto date = [&](const std::string& text) {
      return text == old ? days_ago(50) : text == recent ? days_ago(5) : text;
    };
    auto& cleaner = cluster.Make<LegacyTokenCleaner>(std::chrono::seconds(hours(24 * 30)));
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("kube-apiserver-legacy-service-account-token-tracking");
    map.mutable_metadata()->set_namespace_("kube-system");
    (*map.mutable_data())["since"] = days_ago(c.tracked);
    cluster.fake->Put(map);
    cluster.fake->Put(
        Account("runner", c.listed ? std::vector<std::string>{"t"} : std::vector<std::string>{}));
    corev1::Secret secret = TokenSecret("t", "runner");
    *secret.mutable_metadata()->mutable_creation_timestamp() =
        api::ToTime(cluster.clock.Now() - hours(c.hours_old));
    if (c.other_account) (*secret.mutable_metadata()->mutable_annotations())[kAccountUid] = "another";
    auto& labels = *secret.mutable_metadata()->mutable_labels();
    if (c.used) labels[kLastUsed] = date(*c.used);
    if (!c.invalid.empty()) labels[kInvalidSince] = date(c.invalid);
    cluster.fake->Put(secret);
    if (c.mounted) {
      corev1::Pod pod = PodNamed("p");
      pod.mutable_spec()->set_service_account_name("another");
      pod.mutable_spec()->add_volumes()->mutable_volume_source()->mutable_secret()->set_secret_name("t");
      cluster.fake->Put(pod);
    }
    cluster.Start();
    cluster.Drain({&cleaner});
    const auto left = cluster.List<corev1::Secret>();
    std::string outcome = left.empty() ? "removed" : "kept";
    if (!left.empty()) {
      auto label = left[0].metadata().labels().find(kInvalidSince);
      if (label != left[0].metadata().labels().end() && label->second == days_ago(0)) outcome = "marked";
    }
    EXPECT_EQ(outcome, c.outcome) << c.what;
    EXPECT_THAT(cluster.errors, IsEmpty()) << c.what;
  }
}

}  // namespace
}  // namespace keelson::controllers
