// The IP families of a Service: fills in what the user left out, from the given addresses, the old object
// and the cluster's families. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {

inline constexpr std::string_view kIpv4 = "IPv4", kIpv6 = "IPv6";

std::string_view FamilyOf(std::string_view ip);
bool IsHeadless(const corev1::ServiceSpec& spec);
// True for a Service with PreferDualStack that was dual stack before with the same addresses and families:
// it stays so, whatever the cluster's families are now.
bool IsSettledDualStack(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old);
bool SameClusterIps(const corev1::ServiceSpec& a, const corev1::ServiceSpec& b);
bool SameFamilies(const corev1::ServiceSpec& a, const corev1::ServiceSpec& b);

// Sets ipFamilyPolicy and ipFamilies. `old` is null on create; `families` are the cluster's, the default
// first.
k8s::FieldErrors ChooseFamilies(corev1::ServiceSpec& spec, const corev1::ServiceSpec* old,
                                const std::vector<std::string>& families);

}  // namespace keelson::registry
