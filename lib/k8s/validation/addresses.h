// Internal to lib/k8s/validation: rules for fields that hold addresses and ranges.
#pragma once

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// Require the one canonical form: no leading zeros, no IPv4 address inside an IPv6 one, no bits beyond the
// prefix. Values in `old` were stored under laxer rules and may stay.
void CheckStrictIp(const std::string& value, const Strings& old, const Path& path, FieldErrors& errors);
void CheckStrictCidr(const std::string& value, const Strings& old, const Path& path, FieldErrors& errors);
// Rejects addresses that must not receive traffic: unspecified, loopback, link-local.
void CheckNonSpecialIp(const std::string& ip, const Path& path, FieldErrors& errors);
// A list as JSON; null when empty, as Go prints a nil slice.
std::string PrintList(const Strings& strings);

}  // namespace keelson::k8s
