// Asks the agent of this node to put a container's policies in place.
#pragma once

#include <chrono>

#include "cni/keelson-policy/attachment.h"

namespace keelson::cni {

// Returns when the addresses are ready with the attachment's epoch. kTimeout after `bound`; kUnavailable when
// no agent listens or it hangs up; kForbidden when what listens is not root.
Result<> AwaitPolicies(const PodAttachment& attachment, std::chrono::milliseconds bound);

}  // namespace keelson::cni
