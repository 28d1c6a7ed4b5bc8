// The PersistentVolumeClaims that a pod's volumes refer to.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::controllers {

// Index of pods by the keys of their claims.
extern const char kByClaim[];

// "<pod>-<volume>": the name of the claim for a generic ephemeral volume.
std::string EphemeralClaimName(const corev1::Pod& pod, const corev1::Volume& volume);

// Keys of all claims of the pod, including those for its ephemeral volumes.
std::vector<std::string> ClaimsOf(const corev1::Pod& pod);

}  // namespace keelson::controllers
