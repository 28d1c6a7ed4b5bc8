// The continue token of a paged list, in upstream's form: base64url of
//   {"v":"meta.k8s.io/v1","rv":123,"start":"NEXT"}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::storage {

struct ContinueToken {
  int64_t revision = 0;  // of the first page; -1: the present objects
  std::string start;     // the first key wanted, without the list's prefix
};

std::string Encode(const ContinueToken& token);
Result<ContinueToken> DecodeContinue(std::string_view text);  // kBadRequest
// A token that continues where `text` does, with the present objects; empty when `text` is no token.
std::string InconsistentToken(std::string_view text);

}  // namespace keelson::storage
