#include "lib/base/percent.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(Percent, BothWays) {
  struct Case {
    std::string_view text, encoded;
  };
  for (const Case& c : {Case{"", ""}, Case{"aZ09-._~", "aZ09-._~"}, Case{"a b", "a%20b"},
                        Case{"a+b", "a%2Bb"}, Case{"/?&=%", "%2F%3F%26%3D%25"}, Case{"\xc3\xa4", "%C3%A4"},
                        Case{std::string_view("\0", 1), "%00"}}) {
    EXPECT_EQ(PercentEncode(c.text), c.encoded);
    EXPECT_EQ(PercentDecode(c.encoded), c.text);
    EXPECT_EQ(QueryDecode(c.encoded), c.text);
  }
}

TEST(Percent, DecodesWhatOthersWrite) {
  struct Case {
    const char *encoded, *path, *query;
  };
  for (const Case& c : {Case{"a+b", "a+b", "a b"}, Case{"%2f%2F", "//", "//"}, Case{"100%", "100%", "100%"},
                        Case{"%4", "%4", "%4"}, Case{"%zz", "%zz", "%zz"}, Case{"%%41", "%A", "%A"}}) {
    EXPECT_EQ(PercentDecode(c.encoded), c.path);
    EXPECT_EQ(QueryDecode(c.encoded), c.query);
  }
}

TEST(Percent, RoundTrip) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentDecode("a+b%2"), "a+b%2");
  EXPECT_EQ(PercentEncode("system:node:a b"), "system%3Anode%3Aa%20b");
}

}  // namespace
}  // namespace keelson
