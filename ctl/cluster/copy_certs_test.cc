#include "ctl/cluster/copy_certs.h"

#include <gmock/gmock.h>

namespace keelson::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CopyCerts, OnlyTheKeyOpensThem) {
  const std::string text = NewCertificateKey();
  EXPECT_EQ(text.size(), 64u);
  const std::string key = *DecodeCertificateKey(text);
  EXPECT_EQ(key.size(), 32u);
  const std::string sealed = *SealFile(key, "a secret");
  EXPECT_EQ(*OpenFileText(key, sealed), "a secret");
  EXPECT_NE(*SealFile(key, "a secret"), sealed) << "a new nonce each time";
  std::string changed = sealed;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  EXPECT_EQ(OpenFileText(key, changed).error().code(), Code::kInvalid);
  EXPECT_THAT(OpenFileText(*DecodeCertificateKey(NewCertificateKey()), sealed).error().message(),
              HasSubstr("cipher: message authentication failed"));
  EXPECT_EQ(OpenFileText(key, "short").error().code(), Code::kInvalid);
}

TEST(CopyCerts, AKeyHasTheRightForm) {
  for (const std::string& text :
       {std::string(), std::string(63, 'a'), std::string(64, 'g'), std::string(66, 'a')}) {
    const auto key = DecodeCertificateKey(text);
    ASSERT_FALSE(key) << text;
    if (!text.empty()) {
      EXPECT_THAT(key.error().message(), Not(HasSubstr(text)));
    }
  }
  EXPECT_TRUE(DecodeCertificateKey(std::string(64, 'F')));
}

TEST(CopyCerts, TheSecretBelongsToItsToken) {
  const std::vector<SharedFile> files = SharedFiles({});
  std::vector<std::string> keys;
  for (const SharedFile& file : files) keys.push_back(file.key);
  EXPECT_THAT(keys, testing::ElementsAre("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key",
                                         "sa.pub", "sa.key", "etcd-ca.crt", "etcd-ca.key"));
  EXPECT_EQ(files[7].path, "/etc/kubernetes/pki/etcd/ca.key");
  ClusterConfiguration external;
  external.external_etcd.emplace().ca_file = "/etc/etcd/ca.crt";
  EXPECT_EQ(SharedFiles(external)[6].key, "external-etcd-ca.crt");
  EXPECT_EQ(SharedFiles(external)[6].path, "/etc/etcd/ca.crt");

  corev1::Secret owner;
  owner.mutable_metadata()->set_name("bootstrap-token-abcdef");
  owner.mutable_metadata()->set_uid("u");
  std::vector<std::optional<std::string>> texts(files.size(), "text");
  texts[1] = std::nullopt;
  const std::string key = NewCertificateKey();
  const auto secret = CertsSecret(files, texts, key, owner);
  ASSERT_TRUE(secret) << secret.error().message();
  EXPECT_EQ(secret->metadata().owner_references(0).name(), "bootstrap-token-abcdef");
  EXPECT_TRUE(secret->metadata().owner_references(0).controller());
  EXPECT_EQ(secret->data().at("ca.key"), "") << "an external CA's key is elsewhere";
  EXPECT_EQ(*OpenFileText(*DecodeCertificateKey(key), secret->data().at("sa.key")), "text");
}

}  // namespace
}  // namespace keelson::ctl
