#include "lib/base/text.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

using Strings = std::vector<std::string>;
using Views = std::vector<std::string_view>;

TEST(Text, CaseIsThatOfAscii) {
  EXPECT_EQ(Lower("Content-TYPE @[`{ \xc3\x84"), "content-type @[`{ \xc3\x84");
  EXPECT_EQ(Upper("aZ @[`{ \xc3\xa4"), "AZ @[`{ \xc3\xa4");
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
  EXPECT_TRUE(EqualsIgnoreCase("WebSocket", "websocKET"));
  EXPECT_FALSE(EqualsIgnoreCase("a", "ab"));
  EXPECT_FALSE(EqualsIgnoreCase("@", "`")) << "they differ in the same bit as letters do";
}

TEST(Text, Hex) { EXPECT_EQ(Hex(std::string_view("\0\x1f\xa0z", 4)), "001fa07a"); }

TEST(Text, Trim) {
  struct Case {
    const char *text, *what, *both, *left, *right;
  };
  for (const Case& c :
       {Case{"", " ", "", "", ""}, Case{"  ", " ", "", "", ""}, Case{" a b ", " ", "a b", "a b ", " a b"},
        Case{"\ta\n", " ", "\ta\n", "\ta\n", "\ta\n"}, Case{"a", " ", "a", "a", "a"},
        Case{"/x//", "/", "x", "x//", "/x"}}) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(Trim(c.text, c.what), c.both);
    EXPECT_EQ(TrimLeft(c.text, c.what), c.left);
    EXPECT_EQ(TrimRight(c.text, c.what), c.right);
  }
  EXPECT_EQ(Trim("\r\n\t\v\f a \n"), "a");
}

TEST(Text, Split) {
  struct Case {
    const char* text;
    Views parts;
    Strings items;
    Views words;
  };
  for (const Case& c : {Case{"", {""}, {}, {}}, Case{",", {"", ""}, {""}, {}}, Case{"a", {"a"}, {"a"}, {"a"}},
                        Case{"a,", {"a", ""}, {"a"}, {"a"}}, Case{",a", {"", "a"}, {"", "a"}, {"a"}},
                        Case{"a,,b", {"a", "", "b"}, {"a", "", "b"}, {"a", "b"}},
                        Case{"a,,", {"a", "", ""}, {"a", ""}, {"a"}}}) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(Split(c.text, ','), c.parts);
    EXPECT_EQ(SplitList(c.text), c.items);
    EXPECT_EQ(SplitWords(c.text, ","), c.words);
  }
  EXPECT_EQ(SplitWords(" a\t b\n"), (Views{"a", "b"}));
}

TEST(Text, Join) {
  EXPECT_EQ(Join(Strings{}, ", "), "");
  EXPECT_EQ(Join(Strings{"a"}, ", "), "a");
  EXPECT_EQ(Join(Views{"", "b", ""}, ", "), ", b, ");
}

}  // namespace
}  // namespace keelson
