// A gzip stream of pieces that are compressed one by one: pieces can be kept, and joined in any order and any number,
// without being compressed again. The result is one member, which every client can read (RFC 1952).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace keelson::http {

// Immutable.
struct GzipPiece {
  std::string deflated;  // blocks that end at a byte and refer to nothing before them
  uint32_t crc = 0;      // of the text
  size_t size = 0;       // of the text, in bytes
};

// Compresses at the level of Gzip(). An empty text gives an empty piece.
GzipPiece CompressPiece(std::string_view text);
// The gzip stream of the pieces' texts, one after the other.
std::string JoinPieces(std::span<const GzipPiece* const> pieces);

}  // namespace keelson::http
