// An image pull with ServiceAccount-based credentials from a credential provider.
#include <sys/stat.h>

#include "kubelet/testing/kubelet_test.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

TEST_F(KubeletTest, ProvidersGetTokensOfTheAccount) {
  ASSERT_TRUE(
      WriteFile(dir_ + "/sts", "#!/bin/sh\nread request; echo \"$request\" >> " + dir_ +
                                   "/runs\n"
                                   R"(echo '{"kind":"CredentialProviderResponse","cacheKeyType":"Image",)"
                                   R"("apiVersion":"credentialprovider.kubelet.k8s.io/v1",)"
                                   R"("auth":{"r.io":{"username":"robot","password":"p"}}}')"
                                   "\n"));
  ASSERT_EQ(::chmod((dir_ + "/sts").c_str(), 0755), 0);
  ASSERT_TRUE(WriteFile(dir_ + "/providers.yaml", R"(
kind: CredentialProviderConfig
apiVersion: kubelet.config.k8s.io/v1
providers:
- name: sts
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: [r.io]
  defaultCacheDuration: 1h
  tokenAttributes:
    serviceAccountTokenAudience: registry
    cacheType: ServiceAccount
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [example.com/role]
)"));
  auto providers = CredentialProviders::Load(dir_ + "/providers.yaml", dir_);
  ASSERT_TRUE(providers) << providers.error().message();
  harness_->AskForCredentials(*providers);
  runtime_.SetPullable("r.io/x:1", "robot");
  corev1::ServiceAccount account;
  account.mutable_metadata()->set_namespace_("default");
  account.mutable_metadata()->set_name("builder");
  (*account.mutable_metadata()->mutable_annotations())["example.com/role"] = "build";
  ASSERT_TRUE(harness_->api().Create(account));
  account.Clear();
  account.mutable_metadata()->set_namespace_("default");
  account.mutable_metadata()->set_name("plain");
  ASSERT_TRUE(harness_->api().Create(account));
  harness_->Start();
  auto create = [&](const std::string& name, const std::string& account_name) {
    harness_->Create(R"({"metadata":{"name":")" + name + R"("},"spec":{"serviceAccountName":")" +
                     account_name + R"(","containers":[{"name":"main","image":"r.io/x:1"}]}})");
  };
  create("plain", "plain");
  EXPECT_TRUE(
      harness_->Await("plain", [](const corev1::Pod* pod) { return Waiting(pod) == "ErrImagePull"; }));
  EXPECT_FALSE(PathExists(dir_ + "/runs"));
  create("web", "builder");
  EXPECT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  const std::string runs = ReadFile(dir_ + "/runs").value_or("");
  EXPECT_NE(runs.find(R"("serviceAccountAnnotations":{"example.com/role":"build"})"), std::string::npos)
      << runs;
  EXPECT_NE(runs.find(R"("serviceAccountToken":")"), std::string::npos) << runs;
  // Another pod needs its own credentials for a pulled image.
  create("other", "plain");
  EXPECT_TRUE(
      harness_->Await("other", [](const corev1::Pod* pod) { return Waiting(pod) == "ErrImagePull"; }));
}

}  // namespace
}  // namespace keelson::kubelet
