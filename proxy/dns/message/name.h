// Domain names in wire form (RFC 1035, 3.1): length-prefixed labels up to the empty root label, lower-cased,
// so that equal bytes are equal names. They are plain strings or string views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::proxy::dns {

constexpr size_t kMaxNameSize = 255;
constexpr size_t kMaxLabelSize = 63;

using Name = std::string;

inline char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// "www.example.com" or "www.example.com.", without escapes. kInvalid: an empty label, or one that is too
// long.
Result<Name> ParseName(std::string_view text);
// "www.example.com."; bytes outside of printable ASCII, dots and backslashes are escaped (\DDD).
std::string NameText(std::string_view wire);

// `label` in front of `parent`; check the length of the result with IsName().
Name Join(std::string_view label, std::string_view parent);
bool IsLabel(std::string_view label);                           // 1 to 63 bytes
bool IsName(std::string_view wire);                             // well formed and not too long
bool EndsWith(std::string_view wire, std::string_view suffix);  // by whole labels; equal names included

// Walks the labels of a well formed name: `label = TakeLabel(rest)` until it is empty (the root).
inline std::string_view TakeLabel(std::string_view& rest) {
  size_t size = rest.empty() ? 0 : static_cast<uint8_t>(rest[0]);
  if (size == 0) return {};
  std::string_view label = rest.substr(1, size);
  rest.remove_prefix(1 + size);
  return label;
}

}  // namespace keelson::proxy::dns
