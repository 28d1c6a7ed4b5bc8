#include "lib/crypto/key_derivation.h"

#include <gtest/gtest.h>

namespace keelson::crypto {
namespace {

std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

TEST(DeriveKey, Rfc5869TestCase1) {
  EXPECT_EQ(*DeriveKey(std::string(22, '\x0b'), FromHex("000102030405060708090a0b0c"),
                       FromHex("f0f1f2f3f4f5f6f7f8f9"), 42),
            FromHex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
}

TEST(DeriveKey, RefusesAnEmptySecret) {
  EXPECT_EQ(DeriveKey("", "s", "i", 8).error().code(), Code::kInvalid);
}

// RFC 4231, test case 2.
TEST(HmacSha256, OfTheStandard) {
  const std::string code = HmacSha256("Jefe", "what do ya want for nothing?");
  ASSERT_EQ(code.size(), 32u);
  EXPECT_EQ(code.substr(0, 4), "\x5b\xdc\xc1\x46");
  EXPECT_EQ(code.substr(28), "\x64\xec\x38\x43");
}

}  // namespace
}  // namespace keelson::crypto
