// Rules for Services that the registry checks before it allocates addresses, and warnings for users.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

// Checks clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy against each other. `old` is null for a new
// Service.
FieldErrors CheckServiceAddresses(const corev1::ServiceSpec& spec, const corev1::ServiceSpec* old);
// Prints a list as JSON.
std::string PrintNames(const google::protobuf::RepeatedPtrField<std::string>& list);
// The texts of Warning headers.
std::vector<std::string> ServiceWarnings(const corev1::Service& service);

}  // namespace keelson::k8s
