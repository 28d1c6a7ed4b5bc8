#include "lib/cel/library/utf8.h"

namespace keelson::cel {

uint32_t DecodeCharacter(std::string_view text, size_t at, size_t& length) {
  constexpr uint32_t kInvalid = 0xFFFD;
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(at);
  length = 1;
  if (first < 0x80) return first;
  size_t count = first >= 0xF0 && first < 0xF5   ? 4
                 : first >= 0xE0 && first < 0xF0 ? 3
                 : first >= 0xC2 && first < 0xE0 ? 2
                                                 : 0;
  if (count == 0 || at + count > text.size()) return kInvalid;
  uint32_t c = first & (0xFF >> (count + 1));
  for (size_t i = 1; i < count; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return kInvalid;
    c = (c << 6) | (byte(at + i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[count] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return kInvalid;
  length = count;
  return c;
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t length;
    bool ascii = static_cast<uint8_t>(text[at]) < 0x80;
    DecodeCharacter(text, at, length);
    if (!ascii && length == 1) return false;
    at += length;
  }
  return true;
}

std::optional<size_t> ByteOffset(std::string_view text, int64_t character) {
  if (character < 0) return std::nullopt;
  size_t at = 0;
  for (; character > 0; --character) {
    if (at >= text.size()) return std::nullopt;
    size_t length;
    DecodeCharacter(text, at, length);
    at += length;
  }
  return at;
}

}  // namespace keelson::cel
