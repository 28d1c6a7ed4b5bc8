// containerd's own event stream, for versions without CRI events (before 1.7).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "kubelet/cri/types.h"
#include "lib/base/error.h"

namespace grpc {
class Channel;
}

namespace keelson::kubelet::cri {

// Calls `each` until `stop` or until the stream breaks. kUnimplemented: the peer is not containerd. The events name
// no pod, and CRI calls may show the change a moment later.
Result<> WatchContainerdEvents(const std::shared_ptr<grpc::Channel>& channel,
                               const std::function<void(const ContainerEvent&)>& each, std::stop_token stop);

}  // namespace keelson::kubelet::cri
