// Which certificate serves which name: --tls-sni-cert-key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"

namespace keelson::crypto {

// "crt,key" or "crt,key:name,*.name". kInvalid with upstream's texts.
Result<TlsServerOptions::Named> ParseNamedCertificate(std::string_view text);

// The index in `lists` of the first entry with `name` itself, else of the first with a wildcard for its first label
// ("*.b.c" for "a.b.c", "*" for "a"). -1: there is none. Ignores case.
int FindName(const std::vector<std::vector<std::string>>& lists, std::string_view name);

}  // namespace keelson::crypto
