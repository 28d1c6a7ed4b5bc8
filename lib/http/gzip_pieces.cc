#include "lib/http/gzip_pieces.h"

#include <zlib.h>

#include <cstdlib>

namespace keelson::http {
namespace {

// No name, no time, unknown system.
constexpr std::string_view kHeader("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
// A last block without contents.
constexpr std::string_view kLastBlock("\x03\x00", 2);

void PutLittleEndian(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

GzipPiece CompressPiece(std::string_view text) {
  GzipPiece piece;
  if (text.empty()) return piece;
  z_stream stream{};
  constexpr int kRawWindow = -15;
  if (deflateInit2(&stream, 1, Z_DEFLATED, kRawWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  char buffer[32768];
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    deflate(&stream, Z_FULL_FLUSH);
    piece.deflated.append(buffer, sizeof buffer - stream.avail_out);
  } while (stream.avail_out == 0);
  deflateEnd(&stream);
  piece.deflated.shrink_to_fit();
  piece.crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
  piece.size = text.size();
  return piece;
}

std::string JoinPieces(std::span<const GzipPiece* const> pieces) {
  size_t bytes = kHeader.size() + kLastBlock.size() + 2 * sizeof(uint32_t), size = 0;
  for (const GzipPiece* piece : pieces) bytes += piece->deflated.size();
  std::string out;
  out.reserve(bytes);
  out += kHeader;
  uLong crc = 0;
  for (const GzipPiece* piece : pieces) {
    out += piece->deflated;
    crc = crc32_combine(crc, piece->crc, static_cast<z_off_t>(piece->size));
    size += piece->size;
  }
  out += kLastBlock;
  PutLittleEndian(static_cast<uint32_t>(crc), out);
  PutLittleEndian(static_cast<uint32_t>(size), out);
  return out;
}

}  // namespace keelson::http
