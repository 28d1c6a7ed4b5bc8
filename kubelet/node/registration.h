// How a node comes into the API, and what a kubelet that starts again puts right of one that is there.
#pragma once

#include <optional>
#include <string>

#include "kubelet/node/node_status.h"

namespace keelson::kubelet {

corev1::Node NewNode(const NodeOptions& options);
// Strategic merge patches of the node and of its status; nullopt: nothing to change. What tells of the
// machine is put right, the rest is the administrator's, such as labels that have been taken away since.
std::optional<std::string> RegistrationPatch(const NodeOptions& options, const corev1::Node& there);
// A node that knows of no devices any more has none of the extended resources that it had.
std::optional<std::string> ResetPatch(const NodeOptions& options, const corev1::Node& there);

}  // namespace keelson::kubelet
