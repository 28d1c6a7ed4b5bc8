#include "lib/base/json_quote.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(JsonQuote, Escapes) {
  struct Case {
    std::string_view text, quoted;
  };
  for (const Case& c : {
           Case{"", R"("")"},
           Case{"plain <&> /", R"("plain <&> /")"},
           Case{R"(a"b\c)", R"("a\"b\\c")"},
           Case{"\n\r\t\b\f", R"("\n\r\t\b\f")"},
           Case{std::string_view("\0\x01\x1f\x7f", 4), "\"\\u0000\\u0001\\u001f\x7f\""},
           Case{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
           Case{"a\xff"
                "b",
                R"("a\ufffdb")"},
           Case{"\xc3", R"("\ufffd")"},
           Case{"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},
       }) {
    EXPECT_EQ(JsonQuoted(c.text), c.quoted);
  }
}

TEST(JsonQuote, Utf8Sequences) {
  struct Case {
    const char* text;
    size_t length;
  };
  for (const Case& c :
       {Case{"a", 1}, Case{"\x7f", 1}, Case{"\x80", 0}, Case{"\xc1\x81", 0}, Case{"\xc2\x80", 2},
        Case{"\xc2"
             "a",
             0},
        Case{"\xe0\x9f\xbf", 0}, Case{"\xe0\xa0\x80", 3}, Case{"\xed\x9f\xbf", 3}, Case{"\xed\xa0\x80", 0},
        Case{"\xe2\x82", 0}, Case{"\xf0\x8f\xbf\xbf", 0}, Case{"\xf0\x90\x80\x80", 4},
        Case{"\xf4\x8f\xbf\xbf", 4}, Case{"\xf4\x90\x80\x80", 0}, Case{"\xf5\x80\x80\x80", 0}}) {
    EXPECT_EQ(Utf8SequenceLength(c.text), c.length) << c.text;
  }
}

}  // namespace
}  // namespace keelson
