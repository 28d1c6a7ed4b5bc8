#include "lib/base/base64.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(Base64, AllFormsBothWays) {
  struct Case {
    std::string_view bytes, std, url;  // padded
  };
  // The first seven are RFC 4648's.
  for (const Case& c :
       {Case{"", "", ""}, Case{"f", "Zg==", "Zg=="}, Case{"fo", "Zm8=", "Zm8="}, Case{"foo", "Zm9v", "Zm9v"},
        Case{"foob", "Zm9vYg==", "Zm9vYg=="}, Case{"fooba", "Zm9vYmE=", "Zm9vYmE="},
        Case{"foobar", "Zm9vYmFy", "Zm9vYmFy"}, Case{"\xfb\xff", "+/8=", "-_8="},
        Case{"\xff\xfe\xfd", "//79", "__79"}, Case{std::string_view("\0", 1), "AA==", "AA=="}}) {
    SCOPED_TRACE(c.std);
    const auto raw = [](std::string_view padded) { return padded.substr(0, padded.find('=')); };
    struct Form {
      Base64 form;
      std::string_view text;
    };
    for (const Form& f : {Form{Base64::kStd, c.std}, Form{Base64::kRawStd, raw(c.std)},
                          Form{Base64::kUrl, c.url}, Form{Base64::kRawUrl, raw(c.url)}}) {
      EXPECT_EQ(EncodeBase64(c.bytes, f.form), f.text);
      EXPECT_EQ(Base64Size(c.bytes.size(), f.form), f.text.size());
      Result<std::string> decoded = DecodeBase64(f.text, f.form);
      ASSERT_TRUE(decoded) << decoded.error().message();
      EXPECT_EQ(*decoded, c.bytes);
    }
  }
}

TEST(Base64, RefusesOtherForms) {
  struct Case {
    Base64 form;
    const char* text;
    int at;
  };
  for (const Case& c : {
           Case{Base64::kStd, "Zg", 2},     // no padding
           Case{Base64::kStd, "Zg=", 3},    // too little
           Case{Base64::kStd, "Zg===", 4},  // too much
           Case{Base64::kStd, "Zm9v=", 4},  //
           Case{Base64::kStd, "Z", 1},      // less than a byte
           Case{Base64::kStd, "=", 0},      //
           Case{Base64::kStd, "====", 0},      Case{Base64::kStd, "Z===", 1},
           Case{Base64::kStd, "=Zm9", 0},      Case{Base64::kStd, "Zm9 ", 3},  //
           Case{Base64::kStd, "Zg==Zg==", 4},                                  // more behind the padding
           Case{Base64::kStd, "Zm-_", 2},                                      // the other alphabet
           Case{Base64::kStd, "Zm 9v", 2},                                     // white space
           Case{Base64::kStd, "Zm9v\n", 4},                                    //
           Case{Base64::kRawUrl, "Zg==", 2},                                   // padding
           Case{Base64::kRawUrl, "Zm9vZ", 4},                                  // less than a byte
           Case{Base64::kRawUrl, "Zm+/", 2},                                   // the other alphabet
           Case{Base64::kRawUrl, "Zm9v\n", 4}, Case{Base64::kRawUrl, "a+b=", 1},
           Case{Base64::kRawUrl, "a", 0},      Case{Base64::kRawStd, "Zg==", 2},
           Case{Base64::kUrl, "Zg", 2},
       }) {
    Result<std::string> decoded = DecodeBase64(c.text, c.form);
    ASSERT_FALSE(decoded) << c.text;
    EXPECT_TRUE(decoded.error().Is(Code::kBadRequest));
    EXPECT_EQ(decoded.error().message(), "illegal base64 data at input byte " + std::to_string(c.at))
        << c.text;
  }
}

TEST(Base64, IgnoresWhatItIsToldTo) {
  EXPECT_EQ(*DecodeBase64("Zm9v\r\nYmFy\n", Base64::kStd, "\r\n"), "foobar");
  EXPECT_EQ(*DecodeBase64("Z\nm\n8\n=\n", Base64::kStd, "\r\n"), "fo");
  EXPECT_EQ(*DecodeBase64("Zm9v Yg", Base64::kRawStd, " "), "foob");
  EXPECT_EQ(*DecodeBase64("\n\n", Base64::kStd, "\n"), "");
  EXPECT_FALSE(DecodeBase64("Zm9v YmFy", Base64::kStd, "\r\n"));
}

TEST(Base64, SurplusBitsMayBeAnything) { EXPECT_EQ(*DecodeBase64("Zh=="), "f"); }

}  // namespace
}  // namespace keelson
