// Subject alternative names (RFC 5280, 4.2.1.6). Internal to lib/crypto.
#pragma once

#include <openssl/x509v3.h>

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

struct NamesOfHosts {
  std::vector<std::string> dns_names, ip_addresses, emails, uris;
};
// Ignores other kinds of names. kBadRequest for malformed names. `extensions` may be null.
Result<NamesOfHosts> ReadAlternativeNames(const STACK_OF(X509_EXTENSION) * extensions);

// In the syntax of x509v3_config(5): "DNS:a,IP:10.0.0.1".
std::string AlternativeNames(const std::vector<std::string>& dns_names,
                             const std::vector<std::string>& ip_addresses);

}  // namespace keelson::crypto
