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
  std::chrono::seconds request_timeout{120};  // of calls that do not name one
  // Whether the kernel has killed in this container for lack of memory, where something else than the runtime
  // knows.
  std::function<bool(const std::string& id)> oom_killed = nullptr;
};

struct GrpcServices {
  std::unique_ptr<RuntimeService> runtime;
  std::unique_ptr<ImageService> images;
};

// Connects on first use; a runtime that comes later, or again, is found.
GrpcServices NewGrpcServices(const GrpcOptions& options);

}  // namespace keelson::kubelet::cri
