// Resolves volumes with claims to persistent volumes.
#pragma once

#include "kubelet/container/objects.h"
#include "kubelet/volume/plugin.h"

namespace keelson::kubelet {

// The name of the volume's claim: persistentVolumeClaim's, or "<pod>-<volume>" of an ephemeral volume; "": none.
std::string ClaimName(const corev1::Pod& pod, const corev1::Volume& volume);

// Sets claim, persistent and read_only; does nothing without a claim. kUnavailable, with upstream's message: claim and
// volume are not bound to each other.
Result<> ResolveClaim(ObjectSource& objects, VolumeInput& input);

bool IsBlock(const VolumeInput& input);
// An error if a Block volume is used as a mount, or a Filesystem volume as a device.
Result<> CheckMode(const VolumeInput& input);
// An error if the volume's node affinity does not match the node (null: unknown).
Result<> CheckNode(const VolumeInput& input, const corev1::Node* node);

// The supplemental group of the volume (annotation pv.beta.kubernetes.io/gid); nullopt: none.
std::optional<int64_t> GroupOf(const VolumeInput& input);

}  // namespace keelson::kubelet
