// The container runtime as the kubelet sees it. NewGrpcServices speaks CRI v1 to a socket; FakeRuntime keeps
// state in memory. Both pass one conformance test (testing/runtime_conformance.h).
//
// Thread safe. Calls block until the runtime answers, their deadline has passed (kTimeout) or `stop` is requested
// (kCancelled). kUnavailable: the runtime is away. kNotFound: unknown id; Stop and Remove succeed then.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet::cri {

class RuntimeService {
 public:
  virtual ~RuntimeService() = default;

  virtual Result<Version> GetVersion(std::stop_token stop = {}) = 0;
  virtual Result<RuntimeStatus> Status(std::stop_token stop = {}) = 0;
  // True: `systemd` is set to which cgroup driver the runtime uses. False: the runtime lacks the call (containerd
  // 1.6), and the kubelet's configuration counts.
  virtual Result<bool> CgroupDriver(bool& systemd, std::stop_token stop = {}) = 0;

  virtual Result<std::string> RunPodSandbox(const SandboxConfig& config, const std::string& handler,
                                            std::stop_token stop = {}) = 0;
  virtual Result<> StopPodSandbox(const std::string& id, std::stop_token stop = {}) = 0;
  virtual Result<> RemovePodSandbox(const std::string& id, std::stop_token stop = {}) = 0;
  virtual Result<SandboxStatus> PodSandboxStatus(const std::string& id, std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Sandbox>> ListPodSandbox(const Filter& filter, std::stop_token stop = {}) = 0;

  virtual Result<std::string> CreateContainer(const std::string& sandbox_id, const ContainerConfig& config,
                                              const SandboxConfig& sandbox, std::stop_token stop = {}) = 0;
  virtual Result<> StartContainer(const std::string& id, std::stop_token stop = {}) = 0;
  // Sends the stop signal, SIGKILL after `grace` (zero: at once), and returns when the container has ended.
  virtual Result<> StopContainer(const std::string& id, std::chrono::seconds grace,
                                 std::stop_token stop = {}) = 0;
  virtual Result<> RemoveContainer(const std::string& id, std::stop_token stop = {}) = 0;
  virtual Result<ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Container>> ListContainers(const Filter& filter, std::stop_token stop = {}) = 0;
  virtual Result<> UpdateContainerResources(const std::string& id, const LinuxResources& resources,
                                            std::stop_token stop = {}) = 0;
  // Writes a checkpoint of the container to the file. kUnimplemented: not supported.
  virtual Result<> CheckpointContainer(const std::string&, const std::string&, std::stop_token = {}) {
    return Error(Code::kUnimplemented, "the container runtime has no checkpoints");
  }
  // The node's pod CIDRs: "10.1.0.0/24,fd00::/64".
  virtual Result<> UpdateRuntimeConfig(const std::string& pod_cidrs, std::stop_token stop = {}) = 0;
  virtual Result<> ReopenContainerLog(const std::string& id, std::stop_token stop = {}) = 0;
  virtual Result<std::vector<ContainerStats>> ListContainerStats(const Filter& filter,
                                                                 std::stop_token stop = {}) = 0;

  // kTimeout after `timeout` (zero: none).
  virtual Result<ExecResult> ExecSync(const std::string& id, const std::vector<std::string>& command,
                                      std::chrono::seconds timeout, std::stop_token stop = {}) = 0;
  // URLs of the runtime's streaming server.
  virtual Result<std::string> Exec(const std::string& id, const std::vector<std::string>& command,
                                   const ExecOptions& options, std::stop_token stop = {}) = 0;
  virtual Result<std::string> Attach(const std::string& id, const ExecOptions& options,
                                     std::stop_token stop = {}) = 0;
  virtual Result<std::string> PortForward(const std::string& sandbox_id, const std::vector<int32_t>& ports,
                                          std::stop_token stop = {}) = 0;

  // Calls `each` for every event until `stop` or until the stream breaks. kUnimplemented: no events.
  virtual Result<> WatchEvents(const std::function<void(const ContainerEvent&)>& each,
                               std::stop_token stop) = 0;
};

class ImageService {
 public:
  virtual ~ImageService() = default;
  virtual Result<std::vector<Image>> ListImages(std::stop_token stop = {}) = 0;
  virtual Result<std::optional<Image>> ImageStatus(const std::string& image, std::stop_token stop = {}) = 0;
  // Returns the reference to run the image by. Has no deadline but `stop`.
  virtual Result<std::string> PullImage(const std::string& image, const std::optional<AuthConfig>& auth,
                                        const SandboxConfig& sandbox, std::stop_token stop = {}) = 0;
  virtual Result<> RemoveImage(const std::string& image, std::stop_token stop = {}) = 0;
  virtual Result<ImageFilesystems> ImageFsInfo(std::stop_token stop = {}) = 0;
};

}  // namespace keelson::kubelet::cri
