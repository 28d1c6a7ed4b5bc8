// Internal to lib/k8s: addresses and ranges as fields hold them.
#pragma once

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// One form an address or range only: no leading zeros, no IPv4 address inside an IPv6 one, no bits beyond the
// prefix. What is among `old` was stored when rules were laxer, and may stay.
void CheckStrictIp(const std::string& value, const Strings& old, const Path& path, FieldErrors& errors);
void CheckStrictCidr(const std::string& value, const Strings& old, const Path& path, FieldErrors& errors);
// Addresses that traffic must not be led to: unspecified, loopback, link-local.
void CheckNonSpecialIp(const std::string& ip, const Path& path, FieldErrors& errors);
// A list as JSON; null when empty, as Go prints a nil slice.
std::string PrintList(const Strings& strings);

}  // namespace keelson::k8s
