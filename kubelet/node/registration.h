// The Node object that the kubelet registers, and patches of an existing one. Pure.
#pragma once

#include <optional>
#include <string>

#include "kubelet/node/node_status.h"

namespace keelson::kubelet {

corev1::Node NewNode(const NodeOptions& options);
// Strategic merge patches of an existing node and of its status; nullopt: nothing to change. They update what
// describes the machine; the rest, such as removed labels, is the administrator's.
std::optional<std::string> RegistrationPatch(const NodeOptions& options, const corev1::Node& there);
// Zeroes extended resources that the node has from an earlier kubelet, after its device checkpoint was lost.
std::optional<std::string> ResetPatch(const NodeOptions& options, const corev1::Node& there);

}  // namespace keelson::kubelet
