// What a Service's addresses and families must look like, alone and against the ones before. The registry
// checks the first before it allocates, too: allocation relies on it.
#pragma once

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// The name of a Service, also where others refer to it.
Problems CheckServiceName(std::string_view name);
bool IsHeadless(const corev1::ServiceSpec& spec);
// clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy among themselves. Addresses in `old` are not judged
// anew.
void CheckServiceAddresses(const corev1::ServiceSpec& spec, const Strings& old, FieldErrors& errors);
// The first address and family stay; a second one comes and goes with the policy.
void CheckServiceChange(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old, FieldErrors& errors);

}  // namespace keelson::k8s
