// Fields that a new pod gets beyond its defaults.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::registry {

// Adds requirements for matchLabelKeys and mismatchLabelKeys to the selectors of affinity terms and spread
// constraints, with the values of the pod's own labels.
void MergeLabelKeys(corev1::Pod& pod);
// Makes AppArmor annotations and fields agree: fills each in from the other. Warns about annotations.
void SyncAppArmor(corev1::Pod& pod, std::vector<std::string>* warnings);

}  // namespace keelson::registry
