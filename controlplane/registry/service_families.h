// The IP families of a Service: what the user left open is chosen, from the addresses named, the object
// before and what the cluster has. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {

inline constexpr std::string_view kIpv4 = "IPv4", kIpv6 = "IPv6";

std::string_view FamilyOf(std::string_view ip);
bool IsHeadless(const corev1::ServiceSpec& spec);
// Dual stack where possible, before and now, with the same addresses and families: stays as it is, whatever
// the cluster has become.
bool IsSettledDualStack(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old);
bool SameClusterIps(const corev1::ServiceSpec& a, const corev1::ServiceSpec& b);
bool SameFamilies(const corev1::ServiceSpec& a, const corev1::ServiceSpec& b);

// Fills ipFamilyPolicy and ipFamilies. `old` is null on create; `families` are the cluster's, its default
// first.
k8s::FieldErrors ChooseFamilies(corev1::ServiceSpec& spec, const corev1::ServiceSpec* old,
                                const std::vector<std::string>& families);

}  // namespace keelson::registry
