// The gRPC health checking protocol (grpc.health.v1.Health/Check), as probes use it: without TLS.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "kubelet/probe/handler.h"

namespace keelson::kubelet {

// Success: the server says SERVING of `service` ("" is the server as a whole).
ProbeOutcome CheckGrpcHealth(const std::string& host_port, const std::string& service,
                             std::chrono::seconds timeout, std::stop_token stop);

}  // namespace keelson::kubelet
