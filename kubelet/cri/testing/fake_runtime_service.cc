// What the fake answers to the kubelet's calls.
#include <algorithm>

#include "kubelet/cri/testing/fake_runtime.h"

namespace keelson::kubelet::cri {

namespace {

bool Matches(const Labels& wanted, const Labels& have) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& item) {
    auto it = have.find(item.first);
    return it != have.end() && it->second == item.second;
  });
}

}  // namespace

Result<Version> FakeRuntime::GetVersion(std::stop_token) { return Version{"fake", "1.0.0", "v1"}; }

Result<RuntimeStatus> FakeRuntime::Status(std::stop_token) {
  MutexLock lock(mutex_);
  RuntimeStatus status;
  status.conditions = {{"RuntimeReady", runtime_ready_, "", ""},
                       {"NetworkReady", network_ready_, network_ready_ ? "" : "NetworkPluginNotReady",
                        network_ready_ ? "" : "Network plugin returns error: cni plugin not initialized"}};
  status.handlers = handlers_;
  status.supplemental_groups_policy = supplemental_groups_policy_;
  return status;
}

Result<bool> FakeRuntime::CgroupDriver(bool&, std::stop_token) { return false; }

Result<std::string> FakeRuntime::RunPodSandbox(const SandboxConfig& config, const std::string& handler,
                                               std::stop_token) {
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Begin("RunPodSandbox", config.metadata.name));
  bool known = std::any_of(handlers_.begin(), handlers_.end(),
                           [&](const RuntimeHandler& item) { return item.name == handler; });
  if (!handler.empty() && !known) {
    return Error(Code::kInternal, "no runtime for \"" + handler + "\" is configured");
  }
  std::string id = "sandbox" + std::to_string(next_id_);
  SandboxEntry entry;
  entry.config = config;
  entry.handler = handler;
  entry.status.id = id;
  entry.status.metadata = config.metadata;
  entry.status.state = SandboxState::kReady;
  entry.status.created_at = NowNanos();
  entry.status.network = config.namespaces.network;
  if (config.namespaces.network != NamespaceMode::kNode) {
    entry.status.ips = {"10.99.0." + std::to_string(next_id_ % 250 + 1)};
  }
  entry.status.labels = config.labels;
  entry.status.annotations = config.annotations;
  ++next_id_;
  sandboxes_[id] = std::move(entry);
  return id;
}

Result<> FakeRuntime::StopPodSandbox(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = sandboxes_.find(id);
  KEELSON_RETURN_IF_ERROR(
      Begin("StopPodSandbox", it == sandboxes_.end() ? id : it->second.config.metadata.name));
  if (it == sandboxes_.end()) return {};
  it->second.status.state = SandboxState::kNotReady;
  for (auto& [cid, container] : containers_) {
    if (container.sandbox_id == id && container.status.state == ContainerState::kRunning) {
      Exit(container, 137, "Error");
    }
  }
  return {};
}

Result<> FakeRuntime::RemovePodSandbox(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = sandboxes_.find(id);
  KEELSON_RETURN_IF_ERROR(
      Begin("RemovePodSandbox", it == sandboxes_.end() ? id : it->second.config.metadata.name));
  sandboxes_.erase(id);
  std::erase_if(containers_, [&](const auto& item) { return item.second.sandbox_id == id; });
  return {};
}

Result<SandboxStatus> FakeRuntime::PodSandboxStatus(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = sandboxes_.find(id);
  if (it == sandboxes_.end()) return NoSuch("sandbox", id);
  return it->second.status;
}

Result<std::vector<Sandbox>> FakeRuntime::ListPodSandbox(const Filter& filter, std::stop_token) {
  MutexLock lock(mutex_);
  auto failed = failures_.find("ListPodSandbox");
  if (failed != failures_.end()) return failed->second.first;
  std::vector<Sandbox> out;
  for (const auto& [id, entry] : sandboxes_) {
    if ((!filter.id.empty() && filter.id != id) || !Matches(filter.labels, entry.config.labels)) continue;
    out.push_back(
        {id, entry.config.metadata, entry.status.state, entry.status.created_at, entry.config.labels});
  }
  return out;
}

Result<std::string> FakeRuntime::CreateContainer(const std::string& sandbox_id, const ContainerConfig& config,
                                                 const SandboxConfig&, std::stop_token) {
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Begin("CreateContainer", config.name));
  auto sandbox = sandboxes_.find(sandbox_id);
  if (sandbox == sandboxes_.end()) return NoSuch("sandbox", sandbox_id);
  if (sandbox->second.status.state != SandboxState::kReady) {
    return Error(Code::kInternal, "sandbox container \"" + sandbox_id + "\" is not running");
  }
  std::string id = "container" + std::to_string(next_id_++);
  ContainerEntry entry;
  entry.sandbox_id = sandbox_id;
  entry.config = config;
  ContainerStatus& status = entry.status;
  status.id = id;
  status.name = config.name;
  status.attempt = config.attempt;
  status.state = ContainerState::kCreated;
  status.created_at = NowNanos();
  status.image = config.user_specified_image;
  status.image_ref = config.image;
  status.image_id = config.image;
  status.labels = config.labels;
  status.annotations = config.annotations;
  status.mounts = config.mounts;
  status.log_path = sandbox->second.config.log_directory + "/" + config.log_path;
  status.stop_signal = config.stop_signal.empty() ? "SIGTERM" : config.stop_signal;
  Happened(containers_[id] = std::move(entry), ContainerEvent::Type::kCreated);
  return id;
}

Result<> FakeRuntime::StartContainer(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  KEELSON_RETURN_IF_ERROR(Begin("StartContainer", it == containers_.end() ? id : it->second.config.name));
  if (it == containers_.end()) return NoSuch("container", id);
  if (it->second.status.state != ContainerState::kCreated) {
    return Error(Code::kInternal, "container " + id + " is not in created state");
  }
  if (auto abandoned = abandoned_starts_.extract(it->second.config.name)) {
    Exit(it->second, 128, "StartError");
    it->second.status.message = abandoned.mapped();
    return Error(Code::kCancelled, "context canceled");
  }
  if (half_starts_.erase(it->second.config.name)) {
    it->second.half_started = true;
    return Error(Code::kCancelled, "context canceled");
  }
  it->second.status.state = ContainerState::kRunning;
  it->second.status.started_at = NowNanos();
  Happened(it->second, ContainerEvent::Type::kStarted);
  if (auto exit = exit_on_start_.find(it->second.config.name); exit != exit_on_start_.end()) {
    Exit(it->second, exit->second, "");
  }
  return {};
}

Result<> FakeRuntime::StopContainer(const std::string& id, std::chrono::seconds grace, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  KEELSON_RETURN_IF_ERROR(Begin("StopContainer", it == containers_.end() ? id : it->second.config.name));
  last_grace_ = grace;
  if (it == containers_.end()) return {};
  if (it->second.status.state == ContainerState::kRunning) Exit(it->second, 143, "Error");
  return {};
}

Result<> FakeRuntime::RemoveContainer(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  KEELSON_RETURN_IF_ERROR(Begin("RemoveContainer", it == containers_.end() ? id : it->second.config.name));
  if (it == containers_.end()) return {};
  if (it->second.half_started) {
    return Error(Code::kInternal, "failed to delete containerd container \"" + id +
                                      "\": cannot delete running task " + id + ": failed precondition");
  }
  Happened(it->second, ContainerEvent::Type::kDeleted);
  containers_.erase(it);
  return {};
}

Result<ContainerStatus> FakeRuntime::GetContainerStatus(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  if (it == containers_.end()) return NoSuch("container", id);
  return it->second.status;
}

Result<std::vector<Container>> FakeRuntime::ListContainers(const Filter& filter, std::stop_token) {
  MutexLock lock(mutex_);
  std::vector<Container> out;
  for (const auto& [id, entry] : containers_) {
    if (!filter.id.empty() && filter.id != id) continue;
    if (!filter.sandbox_id.empty() && filter.sandbox_id != entry.sandbox_id) continue;
    if (!Matches(filter.labels, entry.config.labels)) continue;
    out.push_back({id, entry.sandbox_id, entry.config.name, entry.config.attempt, entry.config.image,
                   entry.config.image, entry.status.state, entry.status.created_at, entry.config.labels,
                   entry.config.annotations});
  }
  return out;
}

Result<> FakeRuntime::UpdateContainerResources(const std::string& id, const LinuxResources& resources,
                                               std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  if (it == containers_.end()) return NoSuch("container", id);
  it->second.config.resources = resources;
  return Begin("UpdateContainerResources", it->second.config.name);
}

Result<> FakeRuntime::UpdateRuntimeConfig(const std::string& pod_cidrs, std::stop_token) {
  MutexLock lock(mutex_);
  return Begin("UpdateRuntimeConfig", pod_cidrs);
}

Result<> FakeRuntime::ReopenContainerLog(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  return Begin("ReopenContainerLog", it == containers_.end() ? id : it->second.config.name);
}

Result<std::vector<ContainerStats>> FakeRuntime::ListContainerStats(const Filter&, std::stop_token) {
  return std::vector<ContainerStats>();
}

Result<ExecResult> FakeRuntime::ExecSync(const std::string& id, const std::vector<std::string>& command,
                                         std::chrono::seconds, std::stop_token) {
  std::function<Result<ExecResult>(const std::string&, const std::vector<std::string>&)> exec;
  std::string name;
  {
    MutexLock lock(mutex_);
    auto it = containers_.find(id);
    if (it == containers_.end()) return NoSuch("container", id);
    name = it->second.config.name;
    KEELSON_RETURN_IF_ERROR(Begin("ExecSync", name));
    exec = exec_;
  }
  return exec ? exec(name, command) : Result<ExecResult>(ExecResult{});
}

Result<std::string> FakeRuntime::Exec(const std::string& id, const std::vector<std::string>&,
                                      const ExecOptions&, std::stop_token) {
  return "http://127.0.0.1:1/exec/" + id;
}

Result<std::string> FakeRuntime::Attach(const std::string& id, const ExecOptions&, std::stop_token) {
  return "http://127.0.0.1:1/attach/" + id;
}

Result<std::string> FakeRuntime::PortForward(const std::string& id, const std::vector<int32_t>&,
                                             std::stop_token) {
  return "http://127.0.0.1:1/portforward/" + id;
}

Result<> FakeRuntime::WatchEvents(const std::function<void(const ContainerEvent&)>& each,
                                  std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  mutex_.lock();
  if (!events_supported_) {
    mutex_.unlock();
    return Error(Code::kUnimplemented, "unknown method GetContainerEvents");
  }
  size_t next = events_.size();
  const int broken = streams_broken_;
  ++streams_opened_;
  changed_.notify_all();
  while (!stop.stop_requested() && broken == streams_broken_) {
    if (next == events_.size()) {
      changed_.wait(mutex_);
      continue;
    }
    ContainerEvent event = events_[next++];
    mutex_.unlock();
    each(event);
    mutex_.lock();
  }
  mutex_.unlock();
  return Error(stop.stop_requested() ? Code::kCancelled : Code::kUnavailable, "event stream broken");
}

}  // namespace keelson::kubelet::cri
