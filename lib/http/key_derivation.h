// Keys from a shared secret: HKDF (RFC 5869) with SHA-256.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::http {

// `length` bytes, up to 8160, for one use: other `info` gives unrelated bytes. kInvalid for an empty secret.
Result<std::string> DeriveKey(std::string_view secret, std::string_view salt, std::string_view info,
                              size_t length);

}  // namespace keelson::http
