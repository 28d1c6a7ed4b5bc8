// Rules for names and values of many kinds (apimachinery util/validation). Each function returns the
// problems in upstream's words and order; empty: the value is valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::api {

using Problems = std::vector<std::string>;

Problems CheckDns1123Label(std::string_view value);      // 63 bytes: names of namespaces, containers, volumes
Problems CheckDns1123Subdomain(std::string_view value);  // 253 bytes: names of most objects
Problems CheckDns1123SubdomainWithUnderscore(std::string_view value);  // 253 bytes: DNS search domains
Problems CheckDns1035Label(std::string_view value);   // 63 bytes, begins with a letter: names of services
Problems CheckQualifiedName(std::string_view value);  // label and annotation keys, resource names
Problems CheckLabelValue(std::string_view value);
Problems CheckPathSegmentName(std::string_view value);  // RBAC names
Problems CheckPortName(std::string_view value);         // 15 bytes: IANA service names
Problems CheckPortNumber(int64_t port);                 // 1-65535
Problems CheckEnvVarName(std::string_view value);       // relaxed form: printable ASCII but '='
Problems CheckConfigKey(std::string_view value);        // keys of ConfigMaps and Secrets
Problems CheckHttpHeaderName(std::string_view value);
Problems CheckCIdentifier(std::string_view value);
Problems CheckIp(std::string_view value);  // as in stored objects: also what Go's old net.ParseIP accepted
bool IsIpv4(std::string_view value);
bool IsIpv6(std::string_view value);
// "10.0.0.0/8"; host bits may be set.
bool IsCidr(std::string_view value);

}  // namespace keelson::api
