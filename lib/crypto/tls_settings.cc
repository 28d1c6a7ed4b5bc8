#include "lib/crypto/tls_settings.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace keelson::crypto {

namespace {

struct Version {
  std::string_view name;
  int number;
};
constexpr Version kVersions[] = {
    {"VersionTLS10", 0x0301}, {"VersionTLS11", 0x0302}, {"VersionTLS12", 0x0303}, {"VersionTLS13", 0x0304}};

struct Group {
  int number;
  std::string_view openssl;
};
constexpr Group kGroups[] = {{23, "P-256"}, {24, "P-384"}, {25, "P-521"}, {29, "X25519"}};

struct Suite {
  std::string_view name, openssl;  // "" for suites of TLS 1.3, which are always there, and that OpenSSL lacks
  bool insecure = false;
};
constexpr bool kInsecure = true;
constexpr Suite kSuites[] = {
    {"TLS_AES_128_GCM_SHA256", ""},
    {"TLS_AES_256_GCM_SHA384", ""},
    {"TLS_CHACHA20_POLY1305_SHA256", ""},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256", kInsecure},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", "", kInsecure},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "", kInsecure},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256", kInsecure},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", "", kInsecure},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", "", kInsecure},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA", kInsecure},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256", kInsecure},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", kInsecure},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA", kInsecure},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384", kInsecure},
    {"TLS_RSA_WITH_RC4_128_SHA", "", kInsecure},
};

const Suite* Find(const std::string& name) {
  const auto* it = std::find_if(std::begin(kSuites), std::end(kSuites),
                                [&](const Suite& suite) { return suite.name == name; });
  return it == std::end(kSuites) ? nullptr : it;
}

}  // namespace

Result<int> ParseTlsVersion(const std::string& name) {
  const std::string_view wanted = name.empty() ? "VersionTLS12" : std::string_view(name);
  for (const Version& version : kVersions) {
    if (version.name == wanted) return version.number;
  }
  return Error(Code::kInvalid, "unknown tls version \"" + name + "\"");
}

Result<std::string> CipherList(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    const Suite* suite = Find(name);
    if (!suite) return Error(Code::kInvalid, "Cipher suite " + name + " not supported or doesn't exist");
    if (!suite->openssl.empty()) list += (list.empty() ? "" : ":") + std::string(suite->openssl);
  }
  return list;
}

Result<std::string> GroupList(const std::vector<int>& numbers) {
  std::string list;
  for (int number : numbers) {
    const auto* group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                     [&](const Group& one) { return one.number == number; });
    if (group == std::end(kGroups)) {
      return Error(Code::kInvalid, "TLS curve preference " + std::to_string(number) + " is not supported");
    }
    list += (list.empty() ? "" : ":") + std::string(group->openssl);
  }
  return list;
}

Result<std::vector<std::string>> CheckTlsSettings(const std::string& min_version,
                                                  const std::vector<std::string>& cipher_suites) {
  KEELSON_ASSIGN_OR_RETURN(const int least, ParseTlsVersion(min_version));
  KEELSON_RETURN_IF_ERROR(CipherList(cipher_suites));
  std::vector<std::string> warnings;
  for (const std::string& name : cipher_suites) {
    if (Find(name)->insecure) warnings.push_back("Use of insecure cipher '" + name + "' detected.");
  }
  if (least >= *ParseTlsVersion("VersionTLS13") && !cipher_suites.empty()) {
    warnings.push_back("Warning: TLS 1.3 cipher suites are not configurable, ignoring --tls-cipher-suites");
  }
  return warnings;
}

}  // namespace keelson::crypto
