// Internal to lib/k8s/validation: addresses and families of Services, alone and compared with the old ones.
#pragma once

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// Checks the name of a Service, also in references.
Problems CheckServiceName(std::string_view name);
bool IsHeadless(const corev1::ServiceSpec& spec);
// Checks clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy against each other. Addresses in `old` are
// not checked again.
void CheckServiceAddresses(const corev1::ServiceSpec& spec, const Strings& old, FieldErrors& errors);
// The first address and family must stay; a second one may come and go with ipFamilyPolicy.
void CheckServiceChange(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old, FieldErrors& errors);

}  // namespace keelson::k8s
