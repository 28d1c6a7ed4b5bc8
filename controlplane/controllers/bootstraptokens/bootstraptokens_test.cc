#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/bootstraptokens/controllers.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

corev1::Secret Token(const std::string& id, const std::string& expiration = "") {
  corev1::Secret secret;
  secret.mutable_metadata()->set_name("bootstrap-token-" + id);
  secret.mutable_metadata()->set_namespace_("kube-system");
  secret.set_type("bootstrap.kubernetes.io/token");
  auto& data = *secret.mutable_data();
  data["token-id"] = id;
  data["token-secret"] = "0123456789abcdef";
  data["usage-bootstrap-signing"] = "true";
  if (!expiration.empty()) data["expiration"] = expiration;
  return secret;
}

const WallTime kNow{std::chrono::seconds(1'800'000'000)};  // 2027-01-15T08:00:00Z

TEST(BootstrapTokenTest, WhichMaySign) {
  const struct {
    const char* what;
    std::function<void(corev1::Secret&)> change;
    bool may;
  } cases[] = {
      {"good", [](auto&) {}, true},
      {"good still", [](auto& s) { (*s.mutable_data())["expiration"] = "2027-01-15T09:00:01+01:00"; }, true},
      {"good for ever", [](auto& s) { (*s.mutable_data())["expiration"] = "9999-12-31T23:59:59Z"; }, true},
      {"expired", [](auto& s) { (*s.mutable_data())["expiration"] = "2027-01-15T08:00:00Z"; }, false},
      {"end that cannot be read", [](auto& s) { (*s.mutable_data())["expiration"] = "soon"; }, false},
      {"another name", [](auto& s) { s.mutable_metadata()->set_name("bootstrap-token-other"); }, false},
      {"another type", [](auto& s) { s.set_type("Opaque"); }, false},
      {"no secret", [](auto& s) { s.mutable_data()->erase("token-secret"); }, false},
      {"not for signing", [](auto& s) { s.mutable_data()->erase("usage-bootstrap-signing"); }, false},
      {"not for signing either", [](auto& s) { (*s.mutable_data())["usage-bootstrap-signing"] = "yes"; },
       false},
  };
  for (const auto& c : cases) {
    corev1::Secret secret = Token("abcdef");
    c.change(secret);
    EXPECT_EQ(TokenForSigning(secret, kNow).has_value(), c.may) << c.what;
  }
}

// As upstream's own test has it (cluster-bootstrap/token/jws).
TEST(BootstrapTokenTest, Signature) {
  EXPECT_EQ(DetachedSignature("Hello from the other side. I must have called a thousand times.",
                              {"joshua", "my voice is my passcode"}),
            "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8");
}

class BootstrapTokensTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.Start();
    Drain();
  }
  void Drain() { cluster_.Drain({&signer_, &cleaner_}); }
  std::vector<std::string> Signatures() {
    std::vector<std::string> out;
    const auto map = cluster_.Get<corev1::ConfigMap>("kube-public", "cluster-info");
    for (const auto& [key, value] : map.data()) {
      if (key != "kubeconfig") out.push_back(key);
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string In(std::chrono::seconds time) {
    return api::FormatTime(api::ToTime(cluster_.clock.Now() + time));
  }
  void MakeMap() {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("cluster-info");
    map.mutable_metadata()->set_namespace_("kube-public");
    (*map.mutable_data())["kubeconfig"] = "apiVersion: v1";
    (*map.mutable_data())["jws-kubeconfig-gone00"] = "x";
    ASSERT_TRUE(cluster_.api.Create(map));
  }

  TestCluster cluster_;
  BootstrapSigner& signer_ = cluster_.Make<BootstrapSigner>();
  TokenCleaner& cleaner_ = cluster_.Make<TokenCleaner>();
};

TEST_F(BootstrapTokensTest, SignaturesFollowTokensAndContent) {
  MakeMap();
  ASSERT_TRUE(cluster_.api.Create(Token("aaaaaa")));
  Start();
  EXPECT_THAT(Signatures(), ElementsAre("jws-kubeconfig-aaaaaa"));
  ASSERT_TRUE(cluster_.api.Create(Token("bbbbbb")));
  Drain();
  EXPECT_THAT(Signatures(), ElementsAre("jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb"));
  auto map = cluster_.Get<corev1::ConfigMap>("kube-public", "cluster-info");
  const std::string before = map.data().at("jws-kubeconfig-aaaaaa");
  (*map.mutable_data())["kubeconfig"] = "apiVersion: v2";
  ASSERT_TRUE(cluster_.api.Update(map));
  Drain();
  EXPECT_NE(cluster_.Get<corev1::ConfigMap>("kube-public", "cluster-info").data().at("jws-kubeconfig-aaaaaa"),
            before);
  ASSERT_TRUE(cluster_.api.Delete<corev1::Secret>("kube-system", "bootstrap-token-aaaaaa"));
  Drain();
  EXPECT_THAT(Signatures(), ElementsAre("jws-kubeconfig-bbbbbb"));
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

TEST_F(BootstrapTokensTest, NothingIsWrittenForNothing) {
  MakeMap();
  ASSERT_TRUE(cluster_.api.Create(Token("aaaaaa")));
  Start();
  const std::string version =
      cluster_.Get<corev1::ConfigMap>("kube-public", "cluster-info").metadata().resource_version();
  corev1::Secret secret = cluster_.Get<corev1::Secret>("kube-system", "bootstrap-token-aaaaaa");
  (*secret.mutable_data())["description"] = "x";
  ASSERT_TRUE(cluster_.api.Update(secret));
  Drain();
  EXPECT_EQ(cluster_.Get<corev1::ConfigMap>("kube-public", "cluster-info").metadata().resource_version(),
            version);
}

TEST_F(BootstrapTokensTest, TokensAndTheirSignaturesGoInTime) {
  MakeMap();
  ASSERT_TRUE(cluster_.api.Create(Token("aaaaaa", In(60s))));
  ASSERT_TRUE(cluster_.api.Create(Token("bbbbbb")));
  ASSERT_TRUE(cluster_.api.Create(Token("cccccc", "never")));
  Start();
  EXPECT_EQ(cluster_.List<corev1::Secret>().size(), 2u) << "what cannot be read has come";
  EXPECT_THAT(Signatures(), ElementsAre("jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb"));
  cluster_.Advance(60s, {&signer_});
  EXPECT_THAT(Signatures(), ElementsAre("jws-kubeconfig-bbbbbb")) << "also where nobody cleans up";
  cluster_.Drain({&cleaner_});
  EXPECT_EQ(cluster_.List<corev1::Secret>().size(), 1u);
}

TEST_F(BootstrapTokensTest, WithoutAMapThereIsNothingToSign) {
  ASSERT_TRUE(cluster_.api.Create(Token("aaaaaa")));
  Start();
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

}  // namespace
}  // namespace keelson::controllers
