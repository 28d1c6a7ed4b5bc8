// What a new pod is given beyond its defaults.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::registry {

// matchLabelKeys and mismatchLabelKeys of affinity terms and spread constraints become requirements of their
// selectors, with the pod's own labels' values.
void MergeLabelKeys(corev1::Pod& pod);
// AppArmor annotations and fields say the same: each is filled in from the other. Warns of annotations.
void SyncAppArmor(corev1::Pod& pod, std::vector<std::string>* warnings);

}  // namespace keelson::registry
