// AES encryption of whole values, with keys of 16, 24 or 32 bytes. Never use an initialization vector or nonce twice with
// one key: random.h. Errors contain none of the bytes; kInternal: OpenSSL refuses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::crypto {

inline constexpr size_t kAesBlock = 16;                // also the size of CBC's initialization vector
inline constexpr size_t kGcmNonce = 12, kGcmTag = 16;  // the usual sizes

// CBC (NIST SP 800-38A) with the padding of PKCS #7. Appends the blocks to `out`.
Result<> EncryptAesCbc(std::string_view key, std::string_view vector, std::string_view plain,
                       std::string& out);
// kInvalid "invalid padding on input" for wrong padding; right padding proves nothing. `blocks` are whole blocks.
Result<std::string> DecryptAesCbc(std::string_view key, std::string_view vector, std::string_view blocks);

// GCM (NIST SP 800-38D). Appends the ciphertext and the tag, which authenticates `bound` too.
Result<> EncryptAesGcm(std::string_view key, std::string_view nonce, std::string_view plain,
                       std::string_view bound, std::string& out);
// `sealed` is the output of EncryptAesGcm. kInvalid "cipher: message authentication failed" when it or `bound` has
// changed.
Result<std::string> DecryptAesGcm(std::string_view key, std::string_view nonce, std::string_view sealed,
                                  std::string_view bound);

}  // namespace keelson::crypto
