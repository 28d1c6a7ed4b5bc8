// Somebody else's public key, out of a JSON Web Key (RFC 7517), and all algorithms of RFC 7518 that a key of
// its kind may have signed with. Immutable, cheap to copy, thread safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::crypto {

// RS256 to RS512, PS256 to PS512, ES256 to ES512. Nothing symmetric, and never "none".
bool IsSigningAlgorithm(std::string_view algorithm);

class VerifyKey {
 public:
  // `member` gives a member's text, empty when absent: kty, n, e, crv, x, y. kInvalid for other kinds of key.
  static Result<VerifyKey> FromJwk(const std::function<std::string(std::string_view)>& member);
  // false also when the algorithm is none for this kind of key.
  bool Verify(std::string_view algorithm, std::string_view data, std::string_view signature) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace keelson::crypto
