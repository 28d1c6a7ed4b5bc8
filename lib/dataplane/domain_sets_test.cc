#include "lib/dataplane/domain_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace keelson::dataplane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Whether an address of `name` gets into the set of `pattern`.
bool Matches(const std::string& pattern, const std::string& name) {
  for (bool v4 : {true, false}) {
    const std::vector<std::string> sets = DomainSetsOf(name, v4);
    const std::string set = DomainAddresses(*DomainPattern(pattern), v4).name;
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) return false;
  }
  return true;
}

// The examples of the API's text.
TEST(DomainSets, NamesMatchAsTheApiSays) {
  EXPECT_TRUE(Matches("kubernetes.io", "kubernetes.io"));
  for (const char* other : {"www.kubernetes.io", "blog.kubernetes.io", "my-kubernetes.io", "wikipedia.org"}) {
    EXPECT_FALSE(Matches("kubernetes.io", other)) << other;
  }
  EXPECT_TRUE(Matches("blog.kubernetes.io", "blog.kubernetes.io"));
  EXPECT_FALSE(Matches("blog.kubernetes.io", "www.kubernetes.io"));
  EXPECT_FALSE(Matches("blog.kubernetes.io", "kubernetes.io"));
  for (const char* below : {"www.kubernetes.io", "blog.kubernetes.io", "latest.blog.kubernetes.io"}) {
    EXPECT_TRUE(Matches("*.kubernetes.io", below)) << below;
  }
  for (const char* other :
       {"kubernetes.io", "wikipedia.org", "my-kubernetes.io", "kubernetes.io.example.com"}) {
    EXPECT_FALSE(Matches("*.kubernetes.io", other)) << other;
  }
  EXPECT_TRUE(Matches("WWW.Example.com.", "www.example.com"));
  // A dot within a label is no border between labels: names in wire form come escaped.
  EXPECT_FALSE(Matches("www.kubernetes.io", "www\\046kubernetes.io"));
}

TEST(DomainSets, OnlyNamesOfTheApisForm) {
  EXPECT_EQ(DomainPattern("Www.EXAMPLE.com."), "www.example.com");
  EXPECT_EQ(DomainPattern("*.a_b-c.example"), "*.a_b-c.example");
  for (const char* wrong :
       {"", ".", "*", "*.", "com", "*.com", "**.example.com", "a.*.example.com", "*a.example.com",
        "-a.example.com", "a-.example.com", "a..example.com", "a.example.com..", "_dmarc.example.com",
        "a b.example.com", "\xc3\xa4.example.com"}) {
    EXPECT_EQ(DomainPattern(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(DomainPattern(std::string(250, 'a') + ".example"), std::nullopt);
}

TEST(DomainSets, SetsSayTheirPatterns) {
  for (bool v4 : {true, false}) {
    for (const char* pattern : {"www.example.com", "*.example.com"}) {
      const nft::Set set = DomainAddresses(pattern, v4);
      EXPECT_LE(set.name.size(), 255u);
      EXPECT_EQ(PatternOf(set.name, v4), pattern);
      EXPECT_EQ(PatternOf(set.name, !v4), std::nullopt);
    }
    EXPECT_EQ(PatternOf(v4 ? "pods4-0123" : "pods6-0123", v4), std::nullopt);
  }
  EXPECT_THAT(DomainSetsOf("a.b.example", true),
              ElementsAre("domain4-a.b.example", "subdomains4-b.example", "subdomains4-example"));
  EXPECT_THAT(DomainSetsOf("", true), IsEmpty());
}

}  // namespace
}  // namespace keelson::dataplane
