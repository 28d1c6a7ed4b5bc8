// Providers of credentials that are given tokens of the pods' ServiceAccounts.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/image/image_manager.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

corev1::Pod PodOf(const std::string& name, const std::string& account) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_namespace_("n");
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_uid(name + "-uid");
  if (!account.empty()) pod.mutable_spec()->set_service_account_name(account);
  return pod;
}

class AccountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/account_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    // Writes down what it is asked, and answers with $PASSWORD, in which T is the token.
    ASSERT_TRUE(WriteFile(dir_ + "/sts", R"sh(#!/bin/sh
read request
echo "$request" >> "$DIR/runs"
token=$(echo "$request" | sed -n 's/.*"serviceAccountToken":"\([^"]*\)".*/\1/p')
password=$(echo "$PASSWORD" | sed "s/T/$token/")
echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image",
  "cacheDuration":"10m","auth":{"r.io":{"username":"robot","password":"'"$password"'"}}}'
)sh",
                          0755));
    ASSERT_EQ(::chmod((dir_ + "/sts").c_str(), 0755), 0);
    Annotate("builder", {{"example.com/role", "build"}, {"example.com/region", "eu"}, {"other", "x"}});
    Annotate("runner", {{"example.com/role", "run"}});
    Annotate("plain", {});
  }
  void TearDown() override { (void)RemoveTree(dir_); }
  void Annotate(const std::string& name, const std::map<std::string, std::string>& annotations) {
    auto account = std::make_shared<corev1::ServiceAccount>();
    account->mutable_metadata()->set_uid(name + "-uid");
    for (const auto& [key, value] : annotations) {
      (*account->mutable_metadata()->mutable_annotations())[key] = value;
    }
    accounts_[name] = std::move(account);
  }
  void Load(const std::string& attributes, const std::string& password) {
    ASSERT_TRUE(WriteFile(dir_ + "/config.yaml",
                          "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders:\n"
                          "- name: sts\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
                          "  matchImages: [r.io]\n  defaultCacheDuration: 1h\n"
                          "  env: [{name: DIR, value: " +
                              dir_ + "}, {name: PASSWORD, value: " + password +
                              "}]\n"
                              "  tokenAttributes: {serviceAccountTokenAudience: registry, " +
                              attributes + "}\n"));
    auto loaded = CredentialProviders::Load(dir_ + "/config.yaml", dir_, true, clock_);
    ASSERT_TRUE(loaded) << loaded.error().message();
    providers_ = std::move(*loaded);
    (void)RemoveFile(dir_ + "/runs");
  }
  AccountSource Source() {
    return {[this](const std::string&,
                   const std::string& name) -> Result<std::shared_ptr<const corev1::ServiceAccount>> {
              auto found = accounts_.find(name);
              if (found == accounts_.end()) return Error(Code::kNotFound, "serviceaccounts not found");
              return found->second;
            },
            [](const corev1::Pod& pod, const std::string& audience) -> Result<std::string> {
              return audience + "-" + pod.metadata().name();
            }};
  }
  std::vector<Credential> Get(const corev1::Pod& pod) {
    return providers_->Get("r.io/x:1", pod, Source(), {});
  }
  size_t Count() {
    auto text = ReadFile(dir_ + "/runs");
    return text ? static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
  }

  FakeClock clock_;
  std::string dir_;
  std::map<std::string, std::shared_ptr<const corev1::ServiceAccount>> accounts_;
  std::shared_ptr<CredentialProviders> providers_;
};

constexpr char kWithRole[] =
    "cacheType: ServiceAccount, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: "
    "[example.com/role], optionalServiceAccountAnnotationKeys: [example.com/region]";

TEST_F(AccountTest, TheProviderIsToldWhoseImageItIs) {
  Load(kWithRole, "for-T");
  auto found = Get(PodOf("a", "builder"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].auth.password, "for-registry-a");
  EXPECT_EQ(found[0].from, Credential::From::kServiceAccount);
  EXPECT_EQ(found[0].ns + "/" + found[0].name + "/" + found[0].uid, "n/builder/builder-uid");
  EXPECT_EQ(ReadFile(dir_ + "/runs").value_or(""),
            R"({"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1",)"
            R"("image":"r.io/x:1","serviceAccountToken":"registry-a","serviceAccountAnnotations":)"
            R"({"example.com/region":"eu","example.com/role":"build"}})"
            "\n");
}

TEST_F(AccountTest, AnswersAreKeptForTheAccountOrTheToken) {
  struct Case {
    const char* cache;
    size_t after_other_pod, after_other_account, after_annotation;
  };
  for (const Case& c : {Case{"ServiceAccount", 1, 2, 3}, {"Token", 2, 3, 4}}) {
    Annotate("runner", {});
    Load(std::string("optionalServiceAccountAnnotationKeys: [k], requireServiceAccount: true, cacheType: ") +
             c.cache,
         "for-T");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(Get(PodOf("a", "runner")).size(), 1u);
    EXPECT_EQ(Count(), 1u) << c.cache;
    EXPECT_EQ(Get(PodOf("b", "runner")).size(), 1u);
    EXPECT_EQ(Count(), c.after_other_pod) << c.cache;
    EXPECT_EQ(Get(PodOf("a", "plain")).size(), 1u);
    EXPECT_EQ(Count(), c.after_other_account) << c.cache;
    Annotate("runner", {{"k", "v"}});
    EXPECT_EQ(Get(PodOf("a", "runner")).size(), 1u);
    EXPECT_EQ(Count(), c.after_annotation) << c.cache;
    clock_.Advance(std::chrono::minutes(11));
    EXPECT_EQ(Get(PodOf("a", "runner")).size(), 1u);
    EXPECT_EQ(Count(), c.after_annotation + 1) << c.cache;
  }
}

TEST_F(AccountTest, WhoIsAsked) {
  struct Case {
    const char *attributes, *account;
    bool asked, with_token;
  };
  const char* required = "cacheType: Token, requireServiceAccount: true";
  const char* free = "cacheType: Token, requireServiceAccount: false";
  for (const Case& c : {Case{required, "plain", true, true},
                        {required, "", false, false},
                        {required, "absent", false, false},
                        {free, "", true, false},
                        {free, "plain", true, true},
                        {kWithRole, "plain", false, false},
                        {kWithRole, "runner", true, true}}) {
    SCOPED_TRACE(std::string(c.attributes) + " " + c.account);
    Load(c.attributes, "secret");
    EXPECT_EQ(Get(PodOf("a", c.account)).size(), c.asked ? 1u : 0u);
    EXPECT_EQ(Count(), c.asked ? 1u : 0u);
    EXPECT_EQ(ReadFile(dir_ + "/runs").value_or("").find("serviceAccountToken") != std::string::npos,
              c.with_token);
    EXPECT_EQ(providers_->GetOfAccount("r.io/x:1", PodOf("a", c.account), Source(), {}).size(),
              c.with_token ? 1u : 0u);
  }
}

TEST_F(AccountTest, ATokenIsNoPasswordForOthers) {
  Load("cacheType: ServiceAccount, requireServiceAccount: true", "T");
  EXPECT_TRUE(Get(PodOf("a", "plain")).empty());
  Load("cacheType: Token, requireServiceAccount: true", "T");
  ASSERT_EQ(Get(PodOf("a", "plain")).size(), 1u);
}

TEST_F(AccountTest, WhatOneAccountHasPulledIsNotForOthers) {
  Load("cacheType: ServiceAccount, requireServiceAccount: true", "for-T");
  cri::FakeRuntime runtime{clock_};
  runtime.SetPullable("r.io/x:1", "robot");
  ImageManager::Options options;
  options.providers = providers_;
  options.accounts = Source();
  options.records.dir = dir_ + "/image_manager";
  ImageManager manager(runtime, options, clock_);
  auto ensure = [&](const corev1::Pod& pod, const std::string& policy) {
    EnsuredImage out;
    ImageFailure failure;
    return manager.Ensure({pod, "r.io/x:1", policy, {}, {}, [](auto&&...) {}}, {}, out, failure);
  };
  ASSERT_TRUE(ensure(PodOf("a", "builder"), "IfNotPresent"));
  EXPECT_TRUE(ensure(PodOf("b", "builder"), "Never")) << "its own account";
  EXPECT_FALSE(ensure(PodOf("c", "runner"), "Never"));
  EXPECT_FALSE(ensure(PodOf("d", ""), "Never"));
  EXPECT_TRUE(ensure(PodOf("c", "runner"), "IfNotPresent")) << "by a pull of its own";
  EXPECT_TRUE(ensure(PodOf("c", "runner"), "Never"));
  EXPECT_TRUE(ensure(PodOf("a", "builder"), "Never"));
  const auto records = ListDir(dir_ + "/image_manager/pulled");
  ASSERT_TRUE(records && records->size() == 1u);
  EXPECT_NE(
      ReadFile(dir_ + "/image_manager/pulled/" + records->front())
          ->find(R"("kubernetesServiceAccounts":[{"uid":"builder-uid","namespace":"n","name":"builder"},)"
                 R"({"uid":"runner-uid","namespace":"n","name":"runner"}])"),
      std::string::npos);
}

TEST(TokenAttributes, SayAllThatIsWrong) {
  struct Case {
    const char *attributes, *problem;
    bool tokens = true;
    const char* version = "v1";
  };
  const std::string at = "providers[0].tokenAttributes";
  for (const Case& c : {
           Case{"serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: false", ""},
           {"cacheType: Token, requireServiceAccount: true", ".serviceAccountTokenAudience: Required value"},
           {"serviceAccountTokenAudience: a, requireServiceAccount: true",
            ".cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. "
            "Supported values are: ServiceAccount, Token"},
           {"serviceAccountTokenAudience: a, cacheType: x, requireServiceAccount: true",
            ".cacheType: Unsupported value: \"x\": supported values: \"ServiceAccount\", \"Token\""},
           {"serviceAccountTokenAudience: a, cacheType: Token", ".requireServiceAccount: Required value"},
           {"serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: false, "
            "requiredServiceAccountAnnotationKeys: [k]",
            ".requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when "
            "requiredServiceAccountAnnotationKeys is set"},
           {"serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true, "
            "requiredServiceAccountAnnotationKeys: [k, k]",
            ".requiredServiceAccountAnnotationKeys: Duplicate value: \"k\""},
           {"serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true, "
            "requiredServiceAccountAnnotationKeys: [k, l], optionalServiceAccountAnnotationKeys: [l, m]",
            ": Invalid value: [\"l\"]: annotation keys cannot be both required and optional"},
           {"serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true",
            ": Forbidden: tokenAttributes is only supported for credentialprovider.kubelet.k8s.io/v1 API "
            "version",
            true, "v1beta1"},
           {"serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true",
            ": Forbidden: tokenAttributes is not supported when "
            "KubeletServiceAccountTokenForCredentialProviders feature gate is disabled",
            false},
       }) {
    const auto parsed = ParseCredentialProviders(
        std::string(
            "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders: [{name: "
            "a, matchImages: [x], defaultCacheDuration: 1m, apiVersion: "
            "credentialprovider.kubelet.k8s.io/") +
            c.version + ", tokenAttributes: {" + c.attributes + "}}]",
        c.tokens);
    EXPECT_EQ(parsed ? "" : parsed.error().message(), *c.problem ? at + c.problem : "") << c.attributes;
  }
  EXPECT_NE(
      ParseCredentialProviders(
          "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders: [{name: a, "
          "matchImages: [x], defaultCacheDuration: 1m, apiVersion: "
          "credentialprovider.kubelet.k8s.io/v1, tokenAttributes: {serviceAccountTokenAudience: a, "
          "cacheType: Token, requireServiceAccount: true, optionalServiceAccountAnnotationKeys: [a-]}}]")
          .error()
          .message()
          .find(at + ".optionalServiceAccountAnnotationKeys: Invalid value: \"a-\": name part must "
                     "consist of"),
      std::string::npos);
}

}  // namespace
}  // namespace keelson::kubelet
