// A foreign public key from a JSON Web Key (RFC 7517), with all algorithms of RFC 7518 for keys of its kind. Immutable,
// cheap to copy, thread safe.
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
  // `member` returns a member's text, empty when absent: kty, n, e, crv, x, y. kInvalid for other kinds of key.
  static Result<VerifyKey> FromJwk(const std::function<std::string(std::string_view)>& member);
  // false also for an algorithm of another kind of key.
  bool Verify(std::string_view algorithm, std::string_view data, std::string_view signature) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace keelson::crypto
