#include "lib/crypto/digest.h"

#include <gtest/gtest.h>

#include "lib/base/text.h"

namespace keelson::crypto {
namespace {

TEST(Digest, OfTheStandard) {
  EXPECT_EQ(Hex(Sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), Sha256Hex("abc"));
}

TEST(Digest, InPieces) {
  Sha256Sum sum;
  for (const char* piece : {"a", "", "bc"}) sum.Add(piece);
  EXPECT_EQ(sum.Finish(), Sha256("abc"));
}

}  // namespace
}  // namespace keelson::crypto
