#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/image/image_manager.h"
#include "kubelet/testing/metric_value.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

using std::chrono::minutes;

corev1::Secret PullSecret(const std::string& name, const std::string& auths) {
  corev1::Secret secret;
  secret.set_type("kubernetes.io/dockerconfigjson");
  secret.mutable_metadata()->set_namespace_("n");
  secret.mutable_metadata()->set_name(name);
  secret.mutable_metadata()->set_uid(name + "-uid");
  (*secret.mutable_data())[".dockerconfigjson"] = R"({"auths":{)" + auths + "}}";
  return secret;
}

TEST(Keyring, PatternsCoverImages) {
  struct Case {
    const char *pattern, *image;
    bool covers;
  };
  for (const Case& c : {Case{"r.io", "r.io/app:1", true},
                        {"r.io", "other.io/app", false},
                        {"r.io", "sub.r.io/app", false},
                        {"*.r.io", "sub.r.io/app", true},
                        {"*.r.io", "r.io/app", false},
                        {"*.*.r.io", "a.b.r.io/app", true},
                        {"reg-*.r.io", "reg-eu.r.io/app", true},
                        {"*", "localhost/app", true},
                        {"r.io:5000", "r.io:5000/app", true},
                        {"r.io", "r.io:5000/app", false},
                        {"r.io/team", "r.io/team/app", true},
                        {"r.io/team", "r.io/other/app", false}}) {
    EXPECT_EQ(CoversImage(c.pattern, c.image), c.covers) << c.pattern << " " << c.image;
  }
}

TEST(Keyring, LongestPatternFirst) {
  corev1::Secret secret = PullSecret(
      "s", R"("https://index.docker.io/v1/":{"auth":"dXNlcjpwYXNz"},"r.io":{"username":"a","password":"b"},
              "r.io/team":{"username":"t","password":"b"})");
  auto docker = FindCredentials("docker.io/library/busybox:latest", {secret});
  ASSERT_EQ(docker.size(), 1u);
  EXPECT_EQ(docker[0].auth.username, "user");
  EXPECT_EQ(docker[0].auth.password, "pass");
  EXPECT_EQ(docker[0].uid, "s-uid");
  auto team = FindCredentials("r.io/team/x:1", {secret});
  ASSERT_EQ(team.size(), 2u);
  EXPECT_EQ(team[0].auth.username, "t");
  EXPECT_NE(team[0].hash, team[1].hash);
  EXPECT_TRUE(FindCredentials("other.io/x:1", {secret}).empty());
}

class ProviderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/credential_test.XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  void TearDown() override { (void)RemoveTree(dir_); }
  // A provider that answers with `cache_key`, and counts its runs in a file.
  void Install(const std::string& cache_key) {
    std::string program =
        "#!/bin/sh\nread request\necho \"$request\" >> " + dir_ + "/runs\n" +
        R"(echo '{"kind":"CredentialProviderResponse",)" +
        R"("apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":")" + cache_key +
        R"(","cacheDuration":"10m","auth":{"*.r.io":{"username":"'$WHO'","password":"p"}}}')" + "\n";
    ASSERT_TRUE(WriteFile(dir_ + "/ecr", program, 0755));
    ASSERT_EQ(::chmod((dir_ + "/ecr").c_str(), 0755), 0);
    ASSERT_TRUE(WriteFile(dir_ + "/config.yaml",
                          "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders:\n"
                          "- name: ecr\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
                          "  matchImages: ['*.r.io']\n  defaultCacheDuration: 1h\n"
                          "  env: [{name: WHO, value: robot}]\n"));
  }
  size_t Runs() {
    auto text = ReadFile(dir_ + "/runs");
    return text ? static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
  }
  std::string dir_;
  FakeClock clock_;
};

TEST_F(ProviderTest, AnswersAreKeptByTheirKey) {
  struct Case {
    const char* key;
    size_t runs;  // for three images: two of one registry, one of another, then again after the cache has
                  // expired
  };
  for (const Case& c : {Case{"Image", 4}, {"Registry", 3}, {"Global", 2}}) {
    (void)RemoveFile(dir_ + "/runs");
    Install(c.key);
    auto providers = CredentialProviders::Load(dir_ + "/config.yaml", dir_, true, clock_);
    ASSERT_TRUE(providers) << providers.error().message();
    for (const char* image : {"a.r.io/x", "a.r.io/x", "a.r.io/y", "b.r.io/x"}) {
      auto found = (*providers)->Get(image, {}, {}, {});
      ASSERT_EQ(found.size(), 1u) << image;
      EXPECT_EQ(found[0].auth.username, "robot");
    }
    clock_.Advance(minutes(11));
    EXPECT_EQ((*providers)->Get("a.r.io/x", {}, {}, {}).size(), 1u);
    EXPECT_EQ(Runs(), c.runs) << c.key;
    EXPECT_TRUE((*providers)->Get("r.io/x", {}, {}, {}).empty()) << "not its image";
  }
  EXPECT_NE(ReadFile(dir_ + "/runs")->find(R"("image":"a.r.io/x")"), std::string::npos);
}

TEST_F(ProviderTest, ProgramsThatFailHaveNothing) {
  Install("Registry");
  const std::string errors = "kubelet_credential_provider_plugin_errors_total{plugin_name=\"ecr\"}",
                    runs = "kubelet_credential_provider_plugin_duration_count{plugin_name=\"ecr\"}";
  const double failed = MetricValue(errors), ran = MetricValue(runs);
  for (const char* program : {"#!/bin/sh\nexit 3\n", "#!/bin/sh\necho junk\n", "#!/bin/sh\necho '{}'\n"}) {
    ASSERT_TRUE(WriteFile(dir_ + "/ecr", program));
    auto providers = CredentialProviders::Load(dir_ + "/config.yaml", dir_, true, clock_);
    ASSERT_TRUE(providers);
    EXPECT_TRUE((*providers)->Get("a.r.io/x", {}, {}, {}).empty());
  }
  EXPECT_EQ(MetricValue(errors), failed + 1) << "the others have run well, and have nothing to say";
  EXPECT_EQ(MetricValue(runs), ran + 3);
}

TEST(CredentialProviderConfig, SaysAllThatIsWrong) {
  const std::string head = "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\n";
  struct Case {
    const char *yaml, *problem;
  };
  for (const Case& c : {
           Case{"providers: []", "providers: Required value: at least 1 item in plugins is required"},
           {"providers: [{name: a/b, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: [x], "
            "defaultCacheDuration: 1m}]",
            "providers[0].name: Invalid value: \"a/b\": provider name cannot contain path separators or "
            "spaces, "
            "nor be '.' or '..'"},
           {"providers: [{name: a, apiVersion: v1, defaultCacheDuration: 1m}]",
            "providers[0].matchImages: Required value: at least 1 item in matchImages is required, "
            "providers[0].apiVersion: Unsupported value: \"v1\": supported values: "
            "\"credentialprovider.kubelet.k8s.io/v1\", \"credentialprovider.kubelet.k8s.io/v1alpha1\", "
            "\"credentialprovider.kubelet.k8s.io/v1beta1\""},
           {"providers: [{name: a, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: [x]}]",
            "providers[0].defaultCacheDuration: Required value: defaultCacheDuration is required"},
           {"providers: [{name: a, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: [x], "
            "defaultCacheDuration: 1m, unknownField: a}]",
            "strict decoding error: unknown field \"providers[0].unknownField\""},
           {"providers: [{name: a, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: x, "
            "defaultCacheDuration: 1}]",
            "providers[0].matchImages: must be a list, providers[0].defaultCacheDuration: must be a string, "
            "providers[0].matchImages: Required value: at least 1 item in matchImages is required"},
       }) {
    EXPECT_EQ(ParseCredentialProviders(head + c.yaml).error().message(), c.problem) << c.yaml;
  }
  EXPECT_FALSE(ParseCredentialProviders("kind: Pod"));
  EXPECT_FALSE(ParseCredentialProviders("{"));
}

class VerifyTest : public ProviderTest {
 protected:
  bool Ensure(const std::vector<corev1::Secret>& secrets, const std::string& policy = "IfNotPresent") {
    ImageManager::Options options;
    options.records.dir = dir_ + "/image_manager";
    options.records.verification = verification_;
    options.records.allowlist = {"r.io/free/*"};
    ImageManager manager(runtime_, options, clock_);  // a kubelet that has just been started
    corev1::Pod pod;
    pod.mutable_metadata()->set_uid("u" + std::to_string(++pods_));
    cri::SandboxConfig sandbox;
    EnsuredImage out;
    failure_ = {};
    return manager.Ensure({pod, image_, policy, sandbox, secrets, [](auto&&...) {}}, {}, out, failure_);
  }
  size_t Pulls() { return runtime_.Count("PullImage " + image_); }

  cri::FakeRuntime runtime_{clock_};
  PullVerification verification_ = PullVerification::kNeverPreloaded;
  std::string image_ = "r.io/x:1";
  ImageFailure failure_;
  int pods_ = 0;
};

TEST_F(VerifyTest, WhoCannotPullCannotUse) {
  corev1::Secret mine = PullSecret("mine", R"("r.io":{"username":"me","password":"1"})");
  corev1::Secret copy = PullSecret("copy", R"("r.io":{"username":"me","password":"1"})");
  corev1::Secret wrong = PullSecret("wrong", R"("r.io":{"username":"you","password":"1"})");
  runtime_.SetPullable(image_, "me");
  EXPECT_FALSE(Ensure({}));
  ASSERT_TRUE(Ensure({mine}));
  EXPECT_EQ(Pulls(), 2u);
  const std::string checks = "kubelet_imagemanager_image_mustpull_checks_total";
  const std::string known = checks + "{result=\"credentialRecordFound\"}",
                    unknown = checks + "{result=\"mustAuthenticate\"}";
  const double were_known = MetricValue(known), were_unknown = MetricValue(unknown);
  EXPECT_TRUE(Ensure({mine})) << "known from the record";
  EXPECT_TRUE(Ensure({copy})) << "the same credential in another secret";
  EXPECT_EQ(Pulls(), 2u);
  EXPECT_FALSE(Ensure({wrong}));
  EXPECT_FALSE(Ensure({}));
  EXPECT_EQ(failure_.reason, "ErrImagePull");
  EXPECT_FALSE(Ensure({}, "Never"));
  EXPECT_EQ(failure_.reason, "ErrImageNeverPull");
  EXPECT_EQ(MetricValue(known), were_known + 2);
  EXPECT_EQ(MetricValue(unknown), were_unknown + 3);
  EXPECT_EQ(MetricValue("kubelet_imagemanager_ondisk_pulledrecords"), 1);
  EXPECT_EQ(MetricValue("kubelet_imagemanager_ondisk_pullintents"), 0);
  auto records = ListDir(dir_ + "/image_manager/pulled");
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 1u);
  std::string text = *ReadFile(dir_ + "/image_manager/pulled/" + records->front());
  EXPECT_EQ(text.find("password"), std::string::npos);
  EXPECT_TRUE(ListDir(dir_ + "/image_manager/pulling")->empty());
}

TEST_F(VerifyTest, ImagesPulledWithoutCredentialsAreForAll) {
  runtime_.SetPullable(image_);
  ASSERT_TRUE(Ensure({}));
  EXPECT_TRUE(Ensure({}));
  EXPECT_EQ(Pulls(), 1u);
}

TEST_F(VerifyTest, Policies) {
  struct Case {
    PullVerification verification;
    const char* image;
    bool usable;
  };
  for (const Case& c : {Case{PullVerification::kNeverPreloaded, "r.io/x:1", true},
                        {PullVerification::kNever, "r.io/x:1", true},
                        {PullVerification::kNeverAllowlisted, "r.io/x:1", false},
                        {PullVerification::kNeverAllowlisted, "r.io/free/x:1", true},
                        {PullVerification::kAlways, "r.io/x:1", false}}) {
    verification_ = c.verification;
    image_ = c.image;
    runtime_.AddImage(image_);  // preloaded
    EXPECT_EQ(Ensure({}, "Never"), c.usable) << static_cast<int>(c.verification) << " " << c.image;
  }
}

TEST_F(VerifyTest, APullThatWasCutShortCounts) {
  runtime_.AddImage(image_);
  PullRecords records({dir_ + "/image_manager", PullVerification::kNeverPreloaded, {}}, clock_);
  ASSERT_TRUE(records.Begin(image_));
  EXPECT_EQ(MetricValue("kubelet_imagemanager_ondisk_pullintents"), 1);
  EXPECT_FALSE(Ensure({}, "Never")) << "it is on the node by some pod's credentials";
}

TEST_F(VerifyTest, RecordsAreByIdWhateverAPullAnswers) {
  runtime_.AnswerAsCrio();
  corev1::Secret mine = PullSecret("mine", R"("r.io":{"username":"me","password":"1"})");
  runtime_.SetPullable(image_, "me");
  ASSERT_TRUE(Ensure({mine}));
  EXPECT_TRUE(Ensure({mine}));
  EXPECT_EQ(Pulls(), 1u) << "known from the record";
  EXPECT_FALSE(Ensure({}, "Never"));
}

TEST_F(VerifyTest, RecordsGoWithTheirImages) {
  runtime_.SetPullable(image_);
  ASSERT_TRUE(Ensure({}));
  auto left = [this] { return ListDir(dir_ + "/image_manager/pulled")->size(); };
  PullRecords records({dir_ + "/image_manager", PullVerification::kNeverPreloaded, {}}, clock_);
  records.Prune({}, clock_.Now());
  EXPECT_EQ(left(), 1u) << "it was pulled after the runtime had been asked";
  clock_.Advance(std::chrono::seconds(1));
  records.Prune({"sha256:" + image_, "sha256:other"}, clock_.Now());
  EXPECT_EQ(left(), 1u);
  records.Prune({"sha256:other"}, clock_.Now());
  EXPECT_EQ(left(), 0u);
}

}  // namespace
}  // namespace keelson::kubelet
