// The PodResources v1 server on <root-dir>/pod-resources/kubelet.sock, for monitoring agents and device tools (KEP-606,
// KEP-2403, KEP-3695). Also serves v1alpha1.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "kubelet/podresources/resources.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet::podresources {

struct ServerOptions {
  std::string dir;  // <root-dir>/pod-resources
  // Rate limit of all requests together; more are refused.
  double per_second = 100, burst = 10;
};

// Serves until `stop`; calls `ready` once it listens. An error: it cannot listen.
Result<> RunServer(const ServerOptions& options, Lister& lister, std::stop_token stop,
                   const std::function<void()>& ready, Clock& clock = Clock::Real());

}  // namespace keelson::kubelet::podresources
