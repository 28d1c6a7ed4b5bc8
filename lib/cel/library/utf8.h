// Strings by their characters. Positions of string functions count code points.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace keelson::cel {

bool IsUtf8(std::string_view text);

// The byte offset of the character with this index; the size for the one behind the last; nothing further on.
std::optional<size_t> ByteOffset(std::string_view text, int64_t character);

// The character at `at`, and its length in bytes; an invalid byte is U+FFFD of length one.
uint32_t DecodeCharacter(std::string_view text, size_t at, size_t& length);

}  // namespace keelson::cel
