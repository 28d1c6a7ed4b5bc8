// The ResourceClaims of a pod before its first container (KEP-4381; upstream's pkg/kubelet/cm/dra). Thread safe.
//
// No driver of devices can register with this kubelet yet. A pod that was given devices therefore waits, as with upstream
// while a driver is missing: it never starts without its devices.
#pragma once

#include <functional>
#include <string>

#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// Reads a claim from the API server, not from a cache: reservations change.
using GetResourceClaim =
    std::function<Result<api::resource::v1::ResourceClaim>(const std::string& ns, const std::string& name)>;

// Succeeds when the pod may start: it has no claims, or claims without devices. Otherwise an error in upstream's words:
// a claim is missing, belongs to another pod, is not reserved for the pod or not allocated, or its driver is missing.
Result<> PrepareDynamicResources(const corev1::Pod& pod, const GetResourceClaim& get);

}  // namespace keelson::kubelet
