#include <sys/stat.h>

#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet {
namespace {

class CredentialsTest : public VolumeTest {
 protected:
  corev1::Pod PodWithCertificate(const std::string& paths) {
    return PodWith(R"({"name":"v","projected":{"sources":[{"downwardAPI":{"items":[{"path":"name",
                      "fieldRef":{"fieldPath":"metadata.name"}}]}},{"podCertificate":{"signerName":"a.b/c",
                      "keyType":"ED25519",)" +
                   paths + "}}]}}");
  }
  std::string Dir() { return VolumeDir("kubernetes.io/projected", "v"); }
  std::string Content(const std::string& name) { return ReadFile(Dir() + "/" + name).value_or("none"); }
};

TEST_F(CredentialsTest, KeyAndCertificatesAreWrittenWhereAsked) {
  objects_.credentials["v/1"] = {"key\n", "chain\n"};
  struct Case {
    const char *paths, *bundle, *key, *chain;
  };
  for (const Case& c :
       {Case{R"("credentialBundlePath":"bundle")", "key\nchain\n", "none", "none"},
        {R"("keyPath":"key","certificateChainPath":"chain")", "none", "key\n", "chain\n"},
        {R"("credentialBundlePath":"bundle","keyPath":"key")", "key\nchain\n", "key\n", "none"}}) {
    ASSERT_EQ(Problem(PodWithCertificate(c.paths)), "");
    EXPECT_EQ(Content("bundle"), c.bundle) << c.paths;
    EXPECT_EQ(Content("key"), c.key) << c.paths;
    EXPECT_EQ(Content("chain"), c.chain) << c.paths;
    EXPECT_EQ(Content("name"), "p");
  }
}

TEST_F(CredentialsTest, OnlyThePodsOwnUserReadsThem) {
  objects_.credentials["v/1"] = {"key\n", "chain\n"};
  auto pod = PodWithCertificate(R"("keyPath":"key")");
  pod.mutable_spec()->mutable_security_context()->set_fs_group(::getgid());
  ASSERT_EQ(Problem(pod), "");
  struct stat info = {};
  ASSERT_EQ(::stat((Dir() + "/key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0707, 0600u);
}

TEST_F(CredentialsTest, WaitsForTheFirstAndKeepsTheLast) {
  auto pod = PodWithCertificate(R"("credentialBundlePath":"bundle")");
  EXPECT_EQ(Problem(pod), "MountVolume.SetUp failed for volume \"v\" : credential bundle is not issued yet");
  objects_.credentials["v/1"] = {"key\n", "chain\n"};
  ASSERT_EQ(Problem(pod), "");
  objects_.credentials.clear();  // as after a restart of the kubelet
  EXPECT_EQ(Problem(pod), "");
  EXPECT_EQ(Content("bundle"), "key\nchain\n");
}

}  // namespace
}  // namespace keelson::kubelet
