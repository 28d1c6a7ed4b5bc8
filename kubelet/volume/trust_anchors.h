// The file of a clusterTrustBundle projection.
#pragma once

#include <string>

#include "kubelet/container/objects.h"

namespace keelson::kubelet {

// The certificates of the selected bundles, without duplicates, in PEM. The order is random per process, so that no
// one relies on it.
Result<std::string> TrustAnchors(ObjectSource& objects, const corev1::ClusterTrustBundleProjection& source);

}  // namespace keelson::kubelet
