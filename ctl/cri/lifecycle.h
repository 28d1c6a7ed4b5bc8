// What verbs do to pods and containers. Each prints what it has done, as crictl does.
#pragma once

#include <chrono>
#include <string>

#include "ctl/cri/client.h"

namespace keelson::ctl {

Result<> StartContainer(CriClient& client, const std::string& id);
Result<> StopContainer(CriClient& client, const std::string& id, int64_t grace_seconds);
Result<> StopPod(CriClient& client, const std::string& id);
// `force`: stops it first, if it runs. Without `keep_logs` the log and its rotations go too.
Result<> RemoveContainer(CriClient& client, const std::string& id, bool force, bool keep_logs);
Result<> RemovePod(CriClient& client, const std::string& id, bool force);

// Of a file in JSON or YAML. kInvalid: malformed, or without a name.
Result<cri::PodSandboxConfig> ReadPodConfig(const std::string& path);
Result<cri::ContainerConfig> ReadContainerConfig(const std::string& path);

// Returns the image's reference. `timeout` 0: none.
Result<std::string> PullImage(CriClient& client, const cri::PullImageRequest& request,
                              std::chrono::milliseconds timeout);

}  // namespace keelson::ctl
