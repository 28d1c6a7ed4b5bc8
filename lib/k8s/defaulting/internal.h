// Internal to lib/k8s/defaulting: defaults by kind, one file per family of kinds.
#pragma once

#include <string_view>

#include "lib/api/types.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::k8s {

class DefaultTable;

void DefaultPodSpec(corev1::PodSpec& spec);
void DefaultVolume(corev1::Volume& volume);
void DefaultClaim(corev1::PersistentVolumeClaim& claim);
void DefaultClaimSpec(corev1::PersistentVolumeClaimSpec& spec);
void DefaultPersistentVolumeSpec(corev1::PersistentVolumeSpec& spec);
// Rounds amounts finer than 1/1000 up.
void RoundQuantities(QuantityMap& quantities);
// The default imagePullPolicy: Always for the tag :latest, given or implied, else IfNotPresent.
std::string_view PullPolicyOf(std::string_view image);

void RegisterPodDefaults(DefaultTable& table);
void RegisterServiceDefaults(DefaultTable& table);
void RegisterWorkloadDefaults(DefaultTable& table);
void RegisterAutoscalingDefaults(DefaultTable& table);
void RegisterConfigDefaults(DefaultTable& table);
void RegisterStorageDefaults(DefaultTable& table);
void RegisterNetworkingDefaults(DefaultTable& table);
void RegisterExtensionDefaults(DefaultTable& table);
void RegisterDeviceDefaults(DefaultTable& table);

}  // namespace keelson::k8s
