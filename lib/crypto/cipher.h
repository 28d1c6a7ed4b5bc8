// AES of whole values, with keys of 16, 24 or 32 bytes. An initialization vector or nonce must never come twice with one
// key: random.h. Errors never hold any of the bytes; kInternal: OpenSSL refuses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::crypto {

inline constexpr size_t kAesBlock = 16;                // and an initialization vector of CBC
inline constexpr size_t kGcmNonce = 12, kGcmTag = 16;  // as everybody has them

// CBC (NIST SP 800-38A), padded as PKCS #7 has it. Appends the blocks to `out`.
Result<> EncryptAesCbc(std::string_view key, std::string_view vector, std::string_view plain,
                       std::string& out);
// kInvalid "invalid padding on input" when the padding is none; that it is one proves nothing. `blocks` are whole.
Result<std::string> DecryptAesCbc(std::string_view key, std::string_view vector, std::string_view blocks);

// GCM (NIST SP 800-38D). Appends the ciphertext, then the tag, which is over `bound` too.
Result<> EncryptAesGcm(std::string_view key, std::string_view nonce, std::string_view plain,
                       std::string_view bound, std::string& out);
// `sealed` is what EncryptAesGcm has appended. kInvalid "cipher: message authentication failed" when it, or `bound`, is
// not what it was.
Result<std::string> DecryptAesGcm(std::string_view key, std::string_view nonce, std::string_view sealed,
                                  std::string_view bound);

}  // namespace keelson::crypto
