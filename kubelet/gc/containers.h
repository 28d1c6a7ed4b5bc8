// Which dead containers are kept for people to look at, and which are removed.
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
  int per_container = 1;  // of one container of a pod; negative: any number
  int in_all = -1;        // negative: any number
};

// Ids of those to remove, the oldest first; pure.
std::vector<std::string> PlanContainerGc(const std::vector<cri::Container>& containers,
                                         const ContainerGcOptions& options, WallTime now);
// A container that has ended goes, and with it the files of its run: its log, with all parts, and its
// message.
Result<> RemoveRun(cri::RuntimeService& runtime, const Paths& paths, const cri::ContainerStatus& run,
                   std::stop_token stop);
// Looks once.
Result<> CollectContainers(cri::RuntimeService& runtime, const Paths& paths,
                           const ContainerGcOptions& options, WallTime now, std::stop_token stop);

}  // namespace keelson::kubelet
