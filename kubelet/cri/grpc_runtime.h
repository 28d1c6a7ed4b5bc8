// CRI v1 over gRPC: containerd 1.6 and later, CRI-O.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kubelet/cri/runtime.h"

namespace keelson::kubelet::cri {

struct GrpcOptions {
  std::string endpoint;                       // unix:///run/containerd/containerd.sock, or a path
  std::string image_endpoint;                 // empty: the same
  std::chrono::seconds request_timeout{120};  // of calls without their own timeout
  // Whether the kernel's OOM killer has killed in the container, from another source than the runtime; may be empty.
  std::function<bool(const std::string& id)> oom_killed = nullptr;
};

struct GrpcServices {
  std::unique_ptr<RuntimeService> runtime;
  std::unique_ptr<ImageService> images;
};

// Connects on first use, and reconnects when the runtime is back.
GrpcServices NewGrpcServices(const GrpcOptions& options);

}  // namespace keelson::kubelet::cri
