// TLS versions and cipher suites by their names in Kubernetes' flags and configuration files.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

// The protocol number, 0x0303 for "VersionTLS12"; that for "". kInvalid: no such version.
Result<int> ParseTlsVersion(const std::string& name);

// Suites below TLS 1.3, as OpenSSL lists them: "ECDHE-RSA-AES128-GCM-SHA256:..."; empty when `names` has
// none. kInvalid: no such suite.
Result<std::string> CipherList(const std::vector<std::string>& names);
// OpenSSL's list of key exchange groups, "X25519:P-256"; empty when `numbers` has none. kInvalid: the
// number of an unknown group.
Result<std::string> GroupList(const std::vector<int>& numbers);
// Warnings for these settings: suites that should no longer be used, or that have no
// effect. kInvalid: as above.
Result<std::vector<std::string>> CheckTlsSettings(const std::string& min_version,
                                                  const std::vector<std::string>& cipher_suites);

}  // namespace keelson::crypto
