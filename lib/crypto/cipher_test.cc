#include "lib/crypto/cipher.h"

#include <gtest/gtest.h>

#include "lib/crypto/random.h"

namespace keelson::crypto {
namespace {

std::string Count(size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) out += static_cast<char>(i);
  return out;
}

std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

TEST(Cipher, BothWays) {
  for (size_t key_size : {16, 24, 32}) {
    const std::string key = RandomBytes(key_size);
    for (size_t size : {0, 1, 15, 16, 17, 1000}) {
      SCOPED_TRACE(size);
      const std::string plain = Count(size), vector = RandomBytes(kAesBlock), nonce = RandomBytes(kGcmNonce);
      std::string blocks = "head", sealed = "head";
      ASSERT_TRUE(EncryptAesCbc(key, vector, plain, blocks));
      EXPECT_EQ(blocks.substr(0, 4), "head");
      EXPECT_EQ(blocks.size(), 4 + (size / kAesBlock + 1) * kAesBlock);
      EXPECT_EQ(*DecryptAesCbc(key, vector, blocks.substr(4)), plain);
      ASSERT_TRUE(EncryptAesGcm(key, nonce, plain, "bound", sealed));
      EXPECT_EQ(sealed.size(), 4 + size + kGcmTag);
      EXPECT_EQ(*DecryptAesGcm(key, nonce, sealed.substr(4), "bound"), plain);
    }
  }
}

// AES-256-CBC of "keelson" by openssl enc; GCM's test case 16 of its authors' paper.
TEST(Cipher, ReadsWhatOthersWrote) {
  EXPECT_EQ(*DecryptAesCbc(Count(32), Count(16), FromHex("3982cbe7fafe86cf191ba749f2c8c4b8")), "keelson");
  const std::string key = FromHex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const std::string sealed = FromHex(
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
      "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b");
  EXPECT_EQ(*DecryptAesGcm(key, FromHex("cafebabefacedbaddecaf888"), sealed,
                           FromHex("feedfacedeadbeeffeedfacedeadbeefabaddad2")),
            FromHex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"));
}

TEST(Cipher, NoticesWhatHasChanged) {
  const std::string key = RandomBytes(32), nonce = RandomBytes(kGcmNonce);
  std::string sealed;
  ASSERT_TRUE(EncryptAesGcm(key, nonce, "secret", "bound", sealed));
  struct Case {
    std::string sealed, bound;
  };
  std::string other = sealed;
  other[0] = static_cast<char>(other[0] ^ 1);
  for (const Case& c : {Case{other, "bound"}, Case{sealed, "elsewhere"}, Case{sealed.substr(1), "bound"},
                        Case{sealed.substr(0, 3), "bound"}, Case{"", "bound"}}) {
    Result<std::string> plain = DecryptAesGcm(key, nonce, c.sealed, c.bound);
    ASSERT_FALSE(plain);
    EXPECT_EQ(plain.error().message(), "cipher: message authentication failed");
  }
  EXPECT_EQ(DecryptAesCbc(key, Count(16), "").error().message(), "invalid padding on input");
}

TEST(Cipher, RefusesKeysAndVectorsOfOtherSizes) {
  std::string out;
  EXPECT_FALSE(EncryptAesCbc(Count(15), Count(16), "x", out));
  EXPECT_FALSE(EncryptAesCbc(Count(16), Count(12), "x", out));
  EXPECT_FALSE(EncryptAesGcm(Count(33), Count(12), "x", "", out));
  EXPECT_FALSE(EncryptAesGcm(Count(16), Count(16), "x", "", out));
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace keelson::crypto
