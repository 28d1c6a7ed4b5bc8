#include "lib/api/quantity.h"

#include <gtest/gtest.h>

namespace keelson::api {
namespace {

TEST(Amount, CanonicalForm) {
  static constexpr std::pair<const char*, const char*> kCases[] = {
      {"0", "0"},
      {"0Mi", "0"},
      {"1", "1"},
      {"1000m", "1"},
      {"1500m", "1500m"},
      {"0.5", "500m"},
      {".5", "500m"},
      {"1.", "1"},
      {"100000", "100k"},
      {"1000", "1k"},
      {"1024", "1024"},
      {"1024Ki", "1Mi"},
      {"1025Ki", "1025Ki"},
      {"1.5Gi", "1536Mi"},
      {"0.5Gi", "512Mi"},
      {"0.1Mi", "104858"},
      {"512Ki", "512Ki"},
      {"1Ki", "1Ki"},
      {"0.5Ki", "512"},
      {"1e3", "1e3"},
      {"1E3", "1e3"},
      {"1500e0", "1500"},
      {"1e-3", "1e-3"},
      {"12e6", "12e6"},
      {"123456789", "123456789"},
      {"1u", "1u"},
      {"1n", "1n"},
      {"0.1n", "1n"},
      {"0.0000000001", "1n"},
      {"-1500m", "-1500m"},
      {"+5G", "5G"},
      {"-0.1n", "-1n"},
      {"5000M", "5G"},
      {"9E", "9E"},
      {"100E", "9223372036854775807"},
      {"9223372036854775808", "9223372036854775807"},
      {"1.5E", "1500P"},
      {"007", "7"},
      {"0.0000001Ki", "102400n"},
      {"1234567890123456789", "1234567890123456789"},
  };
  for (const auto& [text, want] : kCases) {
    auto amount = Amount::Parse(text);
    ASSERT_TRUE(amount) << text << ": " << amount.error().message();
    EXPECT_EQ(amount->ToString(), want) << text;
    EXPECT_EQ(Amount::Parse(want)->ToString(), want);
  }
}

TEST(Amount, Errors) {
  for (const char* text :
       {"", "x", "1x", "1 Gi", "Gi", "--1", "1.2.3", "1e", "1Kib", "1Mii", "1e1.5", "-", "."}) {
    auto amount = Amount::Parse(text);
    ASSERT_FALSE(amount) << text;
    EXPECT_EQ(amount.error().code(), Code::kBadRequest);
  }
  EXPECT_EQ(Amount::Parse("1Kii").error().message(), "unable to parse quantity's suffix");
}

TEST(Amount, Arithmetic) {
  Amount amount = *Amount::Parse("1500m");
  EXPECT_EQ(amount.Value(), 2);
  EXPECT_EQ(amount.MilliValue(), 1500);
  EXPECT_DOUBLE_EQ(amount.ToDouble(), 1.5);
  EXPECT_EQ(Amount::Parse("-1500m")->Value(), -2);
  amount += *Amount::Parse("500m");
  EXPECT_EQ(amount.ToString(), "2");
  amount -= Amount::FromInt(3);
  EXPECT_EQ(amount.ToString(), "-1");
  Amount sum;
  sum += Amount::FromBytes(3 << 20);
  EXPECT_EQ(sum.ToString(), "3Mi");
  EXPECT_LT(*Amount::Parse("100m"), Amount::FromMilli(101));
  EXPECT_EQ(*Amount::Parse("1Gi"), Amount::FromInt(1 << 30));
  EXPECT_TRUE(Amount().IsZero());
  EXPECT_EQ(Amount::Of(Amount::FromMilli(250).ToQuantity()).MilliValue(), 250);
}

}  // namespace
}  // namespace keelson::api
