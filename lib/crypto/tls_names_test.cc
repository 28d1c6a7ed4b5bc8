#include "lib/crypto/tls_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/crypto/tls_settings.h"

namespace keelson::crypto {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TlsNames, AreReadFromAFlag) {
  auto plain = ParseNamedCertificate("a.crt,a.key");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->certificate_file, "a.crt");
  EXPECT_EQ(plain->key_file, "a.key");
  EXPECT_THAT(plain->names, IsEmpty());
  auto named = ParseNamedCertificate(" a.crt , a.key : *.foo.com, foo.com ");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->key_file, "a.key");
  EXPECT_THAT(named->names, ElementsAre("*.foo.com", "foo.com"));
  EXPECT_EQ(ParseNamedCertificate("a.crt,a.key:").error().message(), "empty names list is not allowed");
  for (const char* bad : {"", "   ", "a.crt", "a.crt,a.key,b.key", "a.crt,", ":foo"}) {
    auto refused = ParseNamedCertificate(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().message(), "expected comma separated certificate and key file paths");
  }
}

TEST(TlsNames, AreFound) {
  const std::vector<std::vector<std::string>> lists = {
      {"*.foo.com", "a.org"}, {"b.foo.com", "*.foo.com", "*"}, {"10.0.0.1"}};
  const struct {
    const char* name;
    int want;
  } cases[] = {{"a.foo.com", 0}, {"b.foo.com", 1}, {"B.Foo.COM.", 1}, {"foo.com", -1}, {"x.a.foo.com", -1},
               {"a.org", 0},     {"host", 1},      {"10.0.0.1", 2},   {"", -1}};
  for (const auto& c : cases) EXPECT_EQ(FindName(lists, c.name), c.want) << c.name;
}

TEST(TlsGroups, GoByNumbers) {
  EXPECT_EQ(GroupList({}).value_or("?"), "");
  EXPECT_EQ(GroupList({29, 23, 24, 25}).value_or("?"), "X25519:P-256:P-384:P-521");
  EXPECT_FALSE(GroupList({1}));
}

}  // namespace
}  // namespace keelson::crypto
