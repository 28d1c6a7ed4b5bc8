// From a volume that names a claim to the persistent volume behind it.
#pragma once

#include "kubelet/container/objects.h"
#include "kubelet/volume/plugin.h"

namespace keelson::kubelet {

// The claim that a volume stands for ("" for other volumes): named, or "<pod>-<volume>" of an ephemeral one.
std::string ClaimName(const corev1::Pod& pod, const corev1::Volume& volume);

// Fills claim, persistent and read_only in. Nothing to do for a volume without a claim. kUnavailable, in
// upstream's words, while the claim is not bound to a volume that is bound to it.
Result<> ResolveClaim(ObjectSource& objects, VolumeInput& input);

bool IsBlock(const VolumeInput& input);
// A volume of mode Block is no volume mount, and the other way round.
Result<> CheckMode(const VolumeInput& input);
// The node (null: not known) has to be one that the volume can be reached from.
Result<> CheckNode(const VolumeInput& input, const corev1::Node* node);

// That the volume's files are for (annotation pv.beta.kubernetes.io/gid): whoever mounts it joins it.
std::optional<int64_t> GroupOf(const VolumeInput& input);

}  // namespace keelson::kubelet
