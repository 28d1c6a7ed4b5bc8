// Container garbage collection: keeps some dead containers for debugging, and removes the rest.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/container/paths.h"
#include "kubelet/cri/runtime.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

struct ContainerGcOptions {
  std::chrono::milliseconds minimum_age{0};
  int per_container = 1;  // kept per container of a pod; negative: any number
  int in_all = -1;        // kept on the node; negative: any number
};

// The ids to remove, oldest first. Pure.
std::vector<std::string> PlanContainerGc(const std::vector<cri::Container>& containers,
                                         const ContainerGcOptions& options, WallTime now);
// Removes an exited container with its files: rotated logs and termination message.
Result<> RemoveRun(cri::RuntimeService& runtime, const Paths& paths, const cri::ContainerStatus& run,
                   std::stop_token stop);
// One collection.
Result<> CollectContainers(cri::RuntimeService& runtime, const Paths& paths,
                           const ContainerGcOptions& options, WallTime now, std::stop_token stop);

}  // namespace keelson::kubelet
