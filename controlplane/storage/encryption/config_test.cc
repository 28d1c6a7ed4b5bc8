#include "controlplane/storage/encryption/config.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace keelson::storage {
namespace {

constexpr const char* kHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
// 32, 16 and 5 bytes.
constexpr const char* k32 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
constexpr const char* k16 = "AAECAwQFBgcICQoLDA0ODw==";
constexpr const char* k5 = "aGVsbG8=";

std::string Rule(const std::string& resources, const std::string& provider) {
  return fmt::format("{}resources:\n- resources: [{}]\n  providers:\n  - {}\n", kHead, resources, provider);
}

TEST(EncryptionConfig, ReadsProvidersInOrder) {
  auto config = ParseEncryptionConfig(fmt::format(
      "{}resources:\n- resources: [secrets, '*.apps']\n  providers:\n"
      "  - kms: {{apiVersion: v2, name: vault, endpoint: 'unix:///run/kms.sock', timeout: 1.5s}}\n"
      "  - aesgcm: {{keys: [{{name: a, secret: {}}}, {{name: b, secret: {}}}]}}\n  - identity: {{}}\n",
      kHead, k32, k16));
  ASSERT_TRUE(config) << config.error().message();
  ASSERT_EQ(config->rules.size(), 1u);
  const EncryptionRule& rule = config->rules[0];
  EXPECT_EQ(rule.resources, (std::vector<std::string>{"secrets", "*.apps"}));
  ASSERT_EQ(rule.providers.size(), 3u);
  EXPECT_EQ(rule.providers[0].type, EncryptionProvider::Type::kKms);
  EXPECT_EQ(rule.providers[0].timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(rule.providers[1].keys[0].secret.size(), 32u);
  EXPECT_EQ(rule.providers[1].keys[1].name, "b");
  EXPECT_EQ(rule.providers[2].type, EncryptionProvider::Type::kIdentity);
}

TEST(EncryptionConfig, SaysWhatIsWrong) {
  struct Case {
    std::string text, error;
  };
  auto aes = [](const std::string& secret) {
    return fmt::format("aescbc: {{keys: [{{name: k, secret: '{}'}}]}}", secret);
  };
  auto kms = [](const std::string& fields) { return "kms: {apiVersion: v2, " + fields + "}"; };
  const Case cases[] = {
      {"kind: Pod\napiVersion: v1", "no kind \"Pod\" is registered for version \"v1\""},
      {"]", "yaml: line 1: cannot be read"},
      {kHead, "resources: Required value: at least one resources is required"},
      {Rule("", "identity: {}"), "resources[0].resources: Required value: at least one resource is required"},
      {Rule("secrets", aes(k5)),
       "resources[0].providers[0].aescbc.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the "
       "expected length, got 5, expected one of [16 24 32]"},
      {Rule("secrets", aes("hello!")),
       "resources[0].providers[0].aescbc.keys[0].secret: Invalid value: \"REDACTED\": secrets must be base64 "
       "encoded"},
      {Rule("secrets", fmt::format("secretbox: {{keys: [{{name: k, secret: {}}}]}}", k16)),
       "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of "
       "the "
       "expected length, got 16, expected one of [32]"},
      {Rule("secrets", "aesgcm: {keys: []}"),
       "resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required"},
      {Rule("secrets", "aesgcm: {kys: []}\n"),
       "[strict decoding error: unknown field \"resources[0].providers[0].aesgcm.kys\", "
       "resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required]"},
      {Rule("secrets", "{}"),
       "resources[0].providers[0]: Invalid value: \"{}\": provider does not contain any of the expected "
       "providers: KMS, AESGCM, AESCBC, Secretbox, Identity"},
      {Rule("secrets", "identity:"),
       "resources[0].providers[0]: Invalid value: \"{}\": provider does not contain any of the expected "
       "providers: KMS, AESGCM, AESCBC, Secretbox, Identity"},
      {Rule("secrets", "{identity: {}, aesgcm: {}}"),
       "resources[0].providers[0]: Invalid value: \"REDACTED\": more than one provider specified in a single "
       "element, should split into different list elements"},
      {Rule("secrets", "aescbc: {keys: [{name: k, secret: 1234, secret: 5678}]}"),
       "[strict decoding error: yaml: unmarshal errors:\n  line 6: key \"secret\" already set in map, "
       "resources[0].providers[0].aescbc.keys[0].secret: must be a string, "
       "resources[0].providers[0].aescbc.keys[0].secret: Required value: secret is a mandatory field for a "
       "key]"},
      {Rule("secrets", kms("name: 'a:b', endpoint: 'unix:///x'")),
       "resources[0].providers[0].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not "
       "contain ':'"},
      {Rule("secrets", kms("name: a, endpoint: 'tcp://x'")),
       "resources[0].providers[0].kms.endpoint: Invalid value: \"tcp://x\": unsupported scheme \"tcp\" for "
       "KMS "
       "provider, only unix is supported"},
      {Rule("secrets, secrets", "identity: {}"),
       "resources[0].resources: Invalid value: \"secrets,secrets\": the same resource cannot be specified "
       "multiple times"},
      {Rule("secrets, '*.'", "identity: {}"),
       "resources[0].resources: Invalid value: \"secrets,*.\": using overlapping resources such as 'secrets' "
       "and "
       "'*.' in the same resource list is not allowed as they will be masked"},
      {Rule("Secrets", "identity: {}"),
       "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital "
       "letters"},
      {Rule("events.events.k8s.io", "identity: {}"),
       "resources[0].resources[0]: Invalid value: \"events.events.k8s.io\": '*.events.k8s.io' objects are "
       "stored using the 'events' API group in etcd. Use 'events' instead in the config file"},
  };
  for (const Case& one : cases) {
    auto config = ParseEncryptionConfig(one.text);
    ASSERT_FALSE(config) << one.text;
    EXPECT_EQ(config.error().message(), one.error);
  }
}

}  // namespace
}  // namespace keelson::storage
