// Rules of Services that allocation relies on, and what users are warned of.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

// clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy among themselves; `old` is null for a new Service.
FieldErrors CheckServiceAddresses(const corev1::ServiceSpec& spec, const corev1::ServiceSpec* old);
// A list as JSON.
std::string PrintNames(const google::protobuf::RepeatedPtrField<std::string>& list);
// For Warning headers.
std::vector<std::string> ServiceWarnings(const corev1::Service& service);

}  // namespace keelson::k8s
