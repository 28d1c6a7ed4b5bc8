// Keys from a secret by HKDF with SHA-256 (RFC 5869), and message authentication codes.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::crypto {

// `length` bytes, at most 8160, for the use `info`: another `info` gives unrelated bytes. kInvalid for an empty secret.
Result<std::string> DeriveKey(std::string_view secret, std::string_view salt, std::string_view info,
                              size_t length);

// RFC 2104 with SHA-256: 32 raw bytes.
std::string HmacSha256(std::string_view secret, std::string_view data);

}  // namespace keelson::crypto
