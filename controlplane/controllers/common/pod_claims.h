// Which claims a pod's volumes stand for.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::controllers {

// Index of pods by the keys of their claims.
extern const char kByClaim[];

// "<pod>-<volume>": the claim made for a generic ephemeral volume.
std::string EphemeralClaimName(const corev1::Pod& pod, const corev1::Volume& volume);

// Keys of all claims of the pod, those made for its ephemeral volumes among them.
std::vector<std::string> ClaimsOf(const corev1::Pod& pod);

}  // namespace keelson::controllers
