// What a clusterTrustBundle projection's file holds.
#pragma once

#include <string>

#include "kubelet/container/objects.h"

namespace keelson::kubelet {

// Each certificate of the bundles that the projection chooses, once. The order means nothing: it is the same
// for as long as the process lives, and another in the next one, so that nobody comes to rely on it.
Result<std::string> TrustAnchors(ObjectSource& objects, const corev1::ClusterTrustBundleProjection& source);

}  // namespace keelson::kubelet
