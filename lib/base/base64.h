// Base64 (RFC 4648), in the four forms that Go's encoding/base64 knows by these names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson {

enum class Base64 {
  kStd,     // "+" and "/", padded: JSON, PEM, kubeconfigs
  kRawStd,  // without padding
  kUrl,     // "-" and "_", padded
  kRawUrl,  // without padding: JSON Web Tokens, continue tokens
};

// Characters that what `size` bytes make has.
constexpr size_t Base64Size(size_t size, Base64 form = Base64::kStd) {
  const bool padded = form == Base64::kStd || form == Base64::kUrl;
  return padded ? (size + 2) / 3 * 4 : (size * 4 + 2) / 3;
}

std::string EncodeBase64(std::string_view bytes, Base64 form = Base64::kStd);
// To `out`, which has room for Base64Size() characters.
void EncodeBase64To(char* out, std::string_view bytes, Base64 form = Base64::kStd);

// What is not in this form is refused: kBadRequest "illegal base64 data at input byte 5", Go's words. A padded form
// must be padded, a raw one must not. The bits that the last character has too many may be anything. Characters of
// `ignored` may stand anywhere, and count as input bytes: Go's decoders ignore "\r\n".
Result<std::string> DecodeBase64(std::string_view text, Base64 form = Base64::kStd,
                                 std::string_view ignored = "");
// To `out`, which has room for text.size() / 4 * 3 + 3 bytes; how many they are.
Result<size_t> DecodeBase64To(char* out, std::string_view text, Base64 form = Base64::kStd,
                              std::string_view ignored = "");

}  // namespace keelson
