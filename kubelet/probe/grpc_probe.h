// gRPC probes: the health checking protocol (grpc.health.v1.Health/Check), without TLS.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "kubelet/probe/handler.h"

namespace keelson::kubelet {

// Success: the server answers SERVING for `service` ("": the whole server). Blocks, until `timeout` at most.
ProbeOutcome CheckGrpcHealth(const std::string& host_port, const std::string& service,
                             std::chrono::seconds timeout, std::stop_token stop);

}  // namespace keelson::kubelet
