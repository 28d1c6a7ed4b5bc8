// Events of containerds that know none in CRI (before 1.7): its own stream of what happens to containers.
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

// Until `stop` or until the stream breaks; kUnimplemented where the peer is no containerd. The events name no
// pod, and CRI may show what they tell a moment later.
Result<> WatchContainerdEvents(const std::shared_ptr<grpc::Channel>& channel,
                               const std::function<void(const ContainerEvent&)>& each, std::stop_token stop);

}  // namespace keelson::kubelet::cri
