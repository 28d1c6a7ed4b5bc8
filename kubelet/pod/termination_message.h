// A container's termination message, for status.containerStatuses[].state.terminated.message.
#pragma once

#include <string>

#include "kubelet/container/runtime_status.h"

namespace keelson::kubelet {

// The termination message file, at most 4096 bytes; for FallbackToLogsOnError, if the container failed
// without a message, the end of its log, at most 2048 bytes or 80 lines. Empty: there is none.
std::string TerminationMessage(const ContainerRecord& record);

}  // namespace keelson::kubelet
