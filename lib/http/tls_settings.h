// TLS versions and cipher suites by the names that Kubernetes' flags and configuration files have for them.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::http {

// The protocol number, 0x0303 for "VersionTLS12"; that for "". kInvalid: no such version.
Result<int> ParseTlsVersion(const std::string& name);

// Suites below TLS 1.3, as OpenSSL lists them: "ECDHE-RSA-AES128-GCM-SHA256:..."; empty when `names` has
// none. kInvalid: no such suite.
Result<std::string> CipherList(const std::vector<std::string>& names);
// Those of `names` that nobody should use any more.
std::vector<std::string> InsecureCipherSuites(const std::vector<std::string>& names);

}  // namespace keelson::http
