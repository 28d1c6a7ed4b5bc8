#include "lib/http/gzip_pieces.h"

#include <vector>

#include <gtest/gtest.h>

#include "lib/http/gzip.h"

namespace keelson::http {
namespace {

std::string Joined(const std::vector<const GzipPiece*>& pieces) { return Gunzip(JoinPieces(pieces)); }

TEST(GzipPieces, AreJoinedInAnyOrderAndNumber) {
  const std::string long_text(200'000, 'x'), words = "one two one two one two";
  const GzipPiece a = CompressPiece(long_text), b = CompressPiece(words), none = CompressPiece("");
  EXPECT_LT(a.deflated.size(), 2000U);
  EXPECT_EQ(Joined({&a, &b}), long_text + words);
  EXPECT_EQ(Joined({&b, &none, &a, &b, &b}), words + long_text + words + words);
  EXPECT_EQ(Joined({&none}), "");
  EXPECT_EQ(Joined({}), "");
}

TEST(GzipPieces, CarryAChecksumOfTheWhole) {
  const GzipPiece a = CompressPiece("good"), b = CompressPiece("bread");
  GzipPiece damaged = b;
  ++damaged.crc;
  const std::vector<const GzipPiece*> pieces = {&a, &b}, bad = {&a, &damaged};
  EXPECT_EQ(Gunzip(JoinPieces(pieces)), "goodbread");
  EXPECT_EQ(Gunzip(JoinPieces(bad)), "") << "the checksum is wrong";
}

}  // namespace
}  // namespace keelson::http
