#include "kubelet/testing/crash.h"

#include <utility>

#include "kubelet/cm/forwarding_cgroups.h"

namespace keelson::kubelet {

namespace {

using cri::ContainerConfig;
using cri::Filter;
using cri::SandboxConfig;

class Runtime : public cri::RuntimeService {
 public:
  Runtime(cri::RuntimeService& real, CrashPlan& plan) : real_(real), plan_(plan) {}

  // ---- looks ----
  Result<cri::Version> GetVersion(std::stop_token stop) override {
    return plan_.See<cri::Version>([&] { return real_.GetVersion(stop); });
  }
  Result<cri::RuntimeStatus> Status(std::stop_token stop) override {
    return plan_.See<cri::RuntimeStatus>([&] { return real_.Status(stop); });
  }
  Result<bool> CgroupDriver(bool& systemd, std::stop_token stop) override {
    return plan_.See<bool>([&] { return real_.CgroupDriver(systemd, stop); });
  }
  Result<cri::SandboxStatus> PodSandboxStatus(const std::string& id, std::stop_token stop) override {
    return plan_.See<cri::SandboxStatus>([&] { return real_.PodSandboxStatus(id, stop); });
  }
  Result<std::vector<cri::Sandbox>> ListPodSandbox(const Filter& filter, std::stop_token stop) override {
    return plan_.See<std::vector<cri::Sandbox>>([&] { return real_.ListPodSandbox(filter, stop); });
  }
  Result<cri::ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token stop) override {
    return plan_.See<cri::ContainerStatus>([&] { return real_.GetContainerStatus(id, stop); });
  }
  Result<std::vector<cri::Container>> ListContainers(const Filter& filter, std::stop_token stop) override {
    return plan_.See<std::vector<cri::Container>>([&] { return real_.ListContainers(filter, stop); });
  }
  Result<std::vector<cri::ContainerStats>> ListContainerStats(const Filter& filter,
                                                              std::stop_token stop) override {
    return plan_.See<std::vector<cri::ContainerStats>>(
        [&] { return real_.ListContainerStats(filter, stop); });
  }
  Result<cri::ExecResult> ExecSync(const std::string& id, const std::vector<std::string>& command,
                                   std::chrono::seconds timeout, std::stop_token stop) override {
    return plan_.See<cri::ExecResult>([&] { return real_.ExecSync(id, command, timeout, stop); });
  }
  Result<std::string> Exec(const std::string& id, const std::vector<std::string>& command,
                           const cri::ExecOptions& options, std::stop_token stop) override {
    return plan_.See<std::string>([&] { return real_.Exec(id, command, options, stop); });
  }
  Result<std::string> Attach(const std::string& id, const cri::ExecOptions& options,
                             std::stop_token stop) override {
    return plan_.See<std::string>([&] { return real_.Attach(id, options, stop); });
  }
  Result<std::string> PortForward(const std::string& id, const std::vector<int32_t>& ports,
                                  std::stop_token stop) override {
    return plan_.See<std::string>([&] { return real_.PortForward(id, ports, stop); });
  }
  Result<> WatchEvents(const std::function<void(const cri::ContainerEvent&)>& each,
                       std::stop_token stop) override {
    return real_.WatchEvents(
        [&](const cri::ContainerEvent& event) {
          if (!plan_.dead()) each(event);
        },
        stop);
  }

  // ---- effects ----
  Result<std::string> RunPodSandbox(const SandboxConfig& config, const std::string& handler,
                                    std::stop_token stop) override {
    return plan_.Step<std::string>("RunPodSandbox",
                                   [&] { return real_.RunPodSandbox(config, handler, stop); });
  }
  Result<> StopPodSandbox(const std::string& id, std::stop_token stop) override {
    return plan_.Step<void>("StopPodSandbox", [&] { return real_.StopPodSandbox(id, stop); });
  }
  Result<> RemovePodSandbox(const std::string& id, std::stop_token stop) override {
    return plan_.Step<void>("RemovePodSandbox", [&] { return real_.RemovePodSandbox(id, stop); });
  }
  Result<std::string> CreateContainer(const std::string& sandbox_id, const ContainerConfig& config,
                                      const SandboxConfig& sandbox, std::stop_token stop) override {
    return plan_.Step<std::string>("CreateContainer " + config.name,
                                   [&] { return real_.CreateContainer(sandbox_id, config, sandbox, stop); });
  }
  Result<> StartContainer(const std::string& id, std::stop_token stop) override {
    return plan_.Step<void>("StartContainer", [&] { return real_.StartContainer(id, stop); });
  }
  Result<> StopContainer(const std::string& id, std::chrono::seconds grace, std::stop_token stop) override {
    return plan_.Step<void>("StopContainer", [&] { return real_.StopContainer(id, grace, stop); });
  }
  Result<> RemoveContainer(const std::string& id, std::stop_token stop) override {
    return plan_.Step<void>("RemoveContainer", [&] { return real_.RemoveContainer(id, stop); });
  }
  Result<> UpdateContainerResources(const std::string& id, const cri::LinuxResources& resources,
                                    std::stop_token stop) override {
    return plan_.Step<void>("UpdateContainerResources",
                            [&] { return real_.UpdateContainerResources(id, resources, stop); });
  }
  Result<> ReopenContainerLog(const std::string& id, std::stop_token stop) override {
    return plan_.Step<void>("ReopenContainerLog", [&] { return real_.ReopenContainerLog(id, stop); });
  }

 private:
  cri::RuntimeService& real_;
  CrashPlan& plan_;
};

class Mounts : public Mounter {
 public:
  Mounts(Mounter& real, CrashPlan& plan) : real_(real), plan_(plan) {}
  Result<> MountTmpfs(const std::string& target, const std::string& options) override {
    return plan_.Step<void>("MountTmpfs", [&] { return real_.MountTmpfs(target, options); });
  }
  Result<> Bind(const std::string& source, const std::string& target, bool read_only) override {
    return plan_.Step<void>("Bind", [&] { return real_.Bind(source, target, read_only); });
  }
  Result<> Mount(const std::string& source, const std::string& target, const std::string& type,
                 const std::vector<std::string>& options, std::stop_token stop) override {
    return plan_.Step<void>("Mount", [&] { return real_.Mount(source, target, type, options, stop); });
  }
  Result<bool> IsMountPoint(const std::string& path) override {
    return plan_.See<bool>([&] { return real_.IsMountPoint(path); });
  }
  Result<> Unmount(const std::string& target, bool lazy) override {
    return plan_.Step<void>("Unmount", [&] { return real_.Unmount(target, lazy); });
  }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override {
    return plan_.See<std::vector<std::string>>([&] { return real_.MountPointsUnder(prefix); });
  }
  Result<> MakeShared(const std::string& dir) override {
    return plan_.Step<void>("MakeShared", [&] { return real_.MakeShared(dir); });
  }

 private:
  Mounter& real_;
  CrashPlan& plan_;
};

class Groups : public ForwardingCgroups {
 public:
  Groups(PodCgroups& real, CrashPlan& plan) : ForwardingCgroups(real), plan_(plan) {}
  Result<> Start(const NodeContext& node) override {
    return plan_.See<void>([&] { return real_.Start(node); });
  }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    return plan_.Step<void>("EnsureCgroup", [&] { return real_.Ensure(pod, node); });
  }
  Result<> Remove(const std::string& uid) override {
    return plan_.Step<void>("RemoveCgroup", [&] { return real_.Remove(uid); });
  }

 private:
  CrashPlan& plan_;
};

class Wire : public client::Transport {
 public:
  Wire(std::shared_ptr<client::Transport> real, CrashPlan& plan) : real_(std::move(real)), plan_(plan) {}
  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    auto call = [&] { return real_->Do(request, timeout, stop); };
    // How often a status is written depends on the moment; what matters is the pod's removal.
    if (request.method == "DELETE") return plan_.Step<client::ApiResponse>("DELETE", call);
    return plan_.See<client::ApiResponse>(call);
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    return plan_.See<std::unique_ptr<client::ApiStream>>([&] { return real_->Open(request, stop); });
  }

 private:
  std::shared_ptr<client::Transport> real_;
  CrashPlan& plan_;
};

}  // namespace

void CrashPlan::Arm(size_t step, bool after) {
  MutexLock lock(mutex_);
  fatal_ = step;
  after_ = after;
  dead_ = fatal_entered_ = false;
  fatal_name_.clear();
  steps_.clear();
}

void CrashPlan::ArmAt(const std::string& name, bool after) {
  Arm(0, after);
  MutexLock lock(mutex_);
  fatal_name_ = name;
}

std::vector<std::string> CrashPlan::Steps() const {
  MutexLock lock(mutex_);
  return steps_;
}

bool CrashPlan::dead() const {
  MutexLock lock(mutex_);
  return dead_;
}

void CrashPlan::AwaitDeath() {
  MutexLock lock(mutex_);
  while (!dead_) died_.wait(mutex_);
}

bool CrashPlan::Enter(const std::string& name, bool after) {
  MutexLock lock(mutex_);
  if (!after && !dead_) {
    steps_.push_back(name);
    if (fatal_ > 0 ? steps_.size() == fatal_ : !fatal_entered_ && name == fatal_name_) {
      fatal_entered_ = true;
      fatal_name_ = name;
      if (!after_) dead_ = true;
    }
  } else if (after && fatal_entered_ && fatal_name_ == name) {
    dead_ = true;
  }
  if (dead_) died_.notify_all();
  return !dead_;
}

std::unique_ptr<cri::RuntimeService> CrashingRuntime(cri::RuntimeService& real, CrashPlan& plan) {
  return std::make_unique<Runtime>(real, plan);
}
std::unique_ptr<Mounter> CrashingMounter(Mounter& real, CrashPlan& plan) {
  return std::make_unique<Mounts>(real, plan);
}
std::unique_ptr<PodCgroups> CrashingCgroups(PodCgroups& real, CrashPlan& plan) {
  return std::make_unique<Groups>(real, plan);
}
std::shared_ptr<client::Transport> CrashingTransport(std::shared_ptr<client::Transport> real,
                                                     CrashPlan& plan) {
  return std::make_shared<Wire>(std::move(real), plan);
}

}  // namespace keelson::kubelet
