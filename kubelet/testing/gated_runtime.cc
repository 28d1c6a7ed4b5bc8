#include "kubelet/testing/gated_runtime.h"

namespace keelson::kubelet {

namespace {

using cri::ContainerConfig;
using cri::Filter;
using cri::SandboxConfig;

class Gated {
 protected:
  explicit Gated(RuntimeGate& gate) : gate_(gate) {}
  template <typename T, typename Function>
  Result<T> Look(std::string name, const std::stop_token& stop, const Function& function) {
    return Pass<T>({std::move(name), false}, stop, function);
  }
  template <typename T, typename Function>
  Result<T> Do(std::string name, const std::stop_token& stop, const Function& function) {
    return Pass<T>({std::move(name), true}, stop, function);
  }

  RuntimeGate& gate_;

 private:
  template <typename T, typename Function>
  Result<T> Pass(const RuntimeGate::Call& call, const std::stop_token& stop, const Function& function) {
    KEELSON_RETURN_IF_ERROR(gate_.Before(call, stop));
    Result<T> result = function();
    KEELSON_RETURN_IF_ERROR(gate_.After(call));
    return result;
  }
};

class Runtime : public cri::RuntimeService, Gated {
 public:
  Runtime(cri::RuntimeService& real, RuntimeGate& gate) : Gated(gate), real_(real) {}

  // ---- looks ----
  Result<cri::Version> GetVersion(std::stop_token stop) override {
    return Look<cri::Version>("GetVersion", stop, [&] { return real_.GetVersion(stop); });
  }
  Result<cri::RuntimeStatus> Status(std::stop_token stop) override {
    return Look<cri::RuntimeStatus>("Status", stop, [&] { return real_.Status(stop); });
  }
  Result<bool> CgroupDriver(bool& systemd, std::stop_token stop) override {
    return Look<bool>("CgroupDriver", stop, [&] { return real_.CgroupDriver(systemd, stop); });
  }
  Result<cri::SandboxStatus> PodSandboxStatus(const std::string& id, std::stop_token stop) override {
    return Look<cri::SandboxStatus>("PodSandboxStatus", stop,
                                    [&] { return real_.PodSandboxStatus(id, stop); });
  }
  Result<std::vector<cri::Sandbox>> ListPodSandbox(const Filter& filter, std::stop_token stop) override {
    return Look<std::vector<cri::Sandbox>>("ListPodSandbox", stop,
                                           [&] { return real_.ListPodSandbox(filter, stop); });
  }
  Result<cri::ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token stop) override {
    return Look<cri::ContainerStatus>("GetContainerStatus", stop,
                                      [&] { return real_.GetContainerStatus(id, stop); });
  }
  Result<std::vector<cri::Container>> ListContainers(const Filter& filter, std::stop_token stop) override {
    return Look<std::vector<cri::Container>>("ListContainers", stop,
                                             [&] { return real_.ListContainers(filter, stop); });
  }
  Result<std::vector<cri::ContainerStats>> ListContainerStats(const Filter& filter,
                                                              std::stop_token stop) override {
    return Look<std::vector<cri::ContainerStats>>("ListContainerStats", stop,
                                                  [&] { return real_.ListContainerStats(filter, stop); });
  }
  Result<cri::ExecResult> ExecSync(const std::string& id, const std::vector<std::string>& command,
                                   std::chrono::seconds timeout, std::stop_token stop) override {
    return Look<cri::ExecResult>("ExecSync", stop,
                                 [&] { return real_.ExecSync(id, command, timeout, stop); });
  }
  Result<std::string> Exec(const std::string& id, const std::vector<std::string>& command,
                           const cri::ExecOptions& options, std::stop_token stop) override {
    return Look<std::string>("Exec", stop, [&] { return real_.Exec(id, command, options, stop); });
  }
  Result<std::string> Attach(const std::string& id, const cri::ExecOptions& options,
                             std::stop_token stop) override {
    return Look<std::string>("Attach", stop, [&] { return real_.Attach(id, options, stop); });
  }
  Result<std::string> PortForward(const std::string& id, const std::vector<int32_t>& ports,
                                  std::stop_token stop) override {
    return Look<std::string>("PortForward", stop, [&] { return real_.PortForward(id, ports, stop); });
  }
  Result<> WatchEvents(const std::function<void(const cri::ContainerEvent&)>& each,
                       std::stop_token stop) override {
    KEELSON_RETURN_IF_ERROR(gate_.Before({"WatchEvents", false}, stop));
    return real_.WatchEvents(
        [&](const cri::ContainerEvent& event) {
          if (gate_.After({"WatchEvents", false})) each(event);
        },
        stop);
  }

  // ---- effects ----
  Result<std::string> RunPodSandbox(const SandboxConfig& config, const std::string& handler,
                                    std::stop_token stop) override {
    return Do<std::string>("RunPodSandbox", stop, [&] { return real_.RunPodSandbox(config, handler, stop); });
  }
  Result<> StopPodSandbox(const std::string& id, std::stop_token stop) override {
    return Do<void>("StopPodSandbox", stop, [&] { return real_.StopPodSandbox(id, stop); });
  }
  Result<> RemovePodSandbox(const std::string& id, std::stop_token stop) override {
    return Do<void>("RemovePodSandbox", stop, [&] { return real_.RemovePodSandbox(id, stop); });
  }
  Result<std::string> CreateContainer(const std::string& sandbox_id, const ContainerConfig& config,
                                      const SandboxConfig& sandbox, std::stop_token stop) override {
    return Do<std::string>("CreateContainer " + config.name, stop,
                           [&] { return real_.CreateContainer(sandbox_id, config, sandbox, stop); });
  }
  Result<> StartContainer(const std::string& id, std::stop_token stop) override {
    return Do<void>("StartContainer", stop, [&] { return real_.StartContainer(id, stop); });
  }
  Result<> StopContainer(const std::string& id, std::chrono::seconds grace, std::stop_token stop) override {
    return Do<void>("StopContainer", stop, [&] { return real_.StopContainer(id, grace, stop); });
  }
  Result<> RemoveContainer(const std::string& id, std::stop_token stop) override {
    return Do<void>("RemoveContainer", stop, [&] { return real_.RemoveContainer(id, stop); });
  }
  Result<> UpdateContainerResources(const std::string& id, const cri::LinuxResources& resources,
                                    std::stop_token stop) override {
    return Do<void>("UpdateContainerResources", stop,
                    [&] { return real_.UpdateContainerResources(id, resources, stop); });
  }
  Result<> CheckpointContainer(const std::string& id, const std::string& location,
                               std::stop_token stop) override {
    return Do<void>("CheckpointContainer", stop,
                    [&] { return real_.CheckpointContainer(id, location, stop); });
  }
  Result<> UpdateRuntimeConfig(const std::string& pod_cidrs, std::stop_token stop) override {
    return Do<void>("UpdateRuntimeConfig", stop, [&] { return real_.UpdateRuntimeConfig(pod_cidrs, stop); });
  }
  Result<> ReopenContainerLog(const std::string& id, std::stop_token stop) override {
    return Do<void>("ReopenContainerLog", stop, [&] { return real_.ReopenContainerLog(id, stop); });
  }

 private:
  cri::RuntimeService& real_;
};

class Images : public cri::ImageService, Gated {
 public:
  Images(cri::ImageService& real, RuntimeGate& gate) : Gated(gate), real_(real) {}
  Result<std::vector<cri::Image>> ListImages(std::stop_token stop) override {
    return Look<std::vector<cri::Image>>("ListImages", stop, [&] { return real_.ListImages(stop); });
  }
  Result<std::optional<cri::Image>> ImageStatus(const std::string& image, std::stop_token stop) override {
    return Look<std::optional<cri::Image>>("ImageStatus", stop,
                                           [&] { return real_.ImageStatus(image, stop); });
  }
  Result<std::string> PullImage(const std::string& image, const std::optional<cri::AuthConfig>& auth,
                                const SandboxConfig& sandbox, std::stop_token stop) override {
    return Do<std::string>("PullImage", stop, [&] { return real_.PullImage(image, auth, sandbox, stop); });
  }
  Result<> RemoveImage(const std::string& image, std::stop_token stop) override {
    return Do<void>("RemoveImage", stop, [&] { return real_.RemoveImage(image, stop); });
  }
  Result<cri::ImageFilesystems> ImageFsInfo(std::stop_token stop) override {
    return Look<cri::ImageFilesystems>("ImageFsInfo", stop, [&] { return real_.ImageFsInfo(stop); });
  }

 private:
  cri::ImageService& real_;
};

}  // namespace

std::unique_ptr<cri::RuntimeService> GatedRuntime(cri::RuntimeService& real, RuntimeGate& gate) {
  return std::make_unique<Runtime>(real, gate);
}
std::unique_ptr<cri::ImageService> GatedImages(cri::ImageService& real, RuntimeGate& gate) {
  return std::make_unique<Images>(real, gate);
}

}  // namespace keelson::kubelet
