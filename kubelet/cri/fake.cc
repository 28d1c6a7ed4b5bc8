#include "kubelet/cri/fake.h"

#include <algorithm>

namespace keelson::kubelet::cri {

namespace {

bool Matches(const Labels& wanted, const Labels& have) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& item) {
    auto it = have.find(item.first);
    return it != have.end() && it->second == item.second;
  });
}

Error NoSuch(const std::string& what, const std::string& id) {
  return Error(Code::kNotFound, what + " " + id);
}

}  // namespace

// Strictly increasing, as creation times order attempts.
int64_t FakeRuntime::NowNanos() {
  int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.Now().time_since_epoch()).count();
  last_time_ = std::max(now, last_time_ + 1);
  return last_time_;
}

Result<> FakeRuntime::Begin(const std::string& method, const std::string& detail) {
  calls_.push_back(detail.empty() ? method : method + " " + detail);
  changed_.notify_all();
  auto it = failures_.find(method);
  if (it == failures_.end()) return {};
  Error error = it->second.first;
  if (it->second.second) failures_.erase(it);
  return error;
}

void FakeRuntime::AddImage(const std::string& name, std::optional<int64_t> uid) {
  MutexLock lock(mutex_);
  Image image;
  image.id = "sha256:" + name;
  image.repo_tags = {name};
  image.size = 1000;
  image.uid = uid;
  images_[name] = image;
}

void FakeRuntime::SetPullable(const std::string& name) {
  MutexLock lock(mutex_);
  pullable_.insert(name);
}

void FakeRuntime::Fail(const std::string& method, std::optional<Error> error, bool once) {
  MutexLock lock(mutex_);
  failures_.erase(method);
  if (error) failures_.emplace(method, std::make_pair(*error, once));
}

void FakeRuntime::Exit(ContainerEntry& container, int code, const std::string& reason) {
  container.status.state = ContainerState::kExited;
  container.status.finished_at = NowNanos();
  container.status.exit_code = code;
  container.status.reason = !reason.empty() ? reason : code == 0 ? "Completed" : "Error";
  changed_.notify_all();
}

void FakeRuntime::ExitContainer(const std::string& pod_uid, const std::string& name, int exit_code,
                                const std::string& reason) {
  MutexLock lock(mutex_);
  for (auto& [id, container] : containers_) {
    auto sandbox = sandboxes_.find(container.sandbox_id);
    if (sandbox == sandboxes_.end() || sandbox->second.config.metadata.uid != pod_uid) continue;
    if (container.config.name == name && container.status.state == ContainerState::kRunning)
      Exit(container, exit_code, reason);
  }
}

void FakeRuntime::KillSandbox(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  for (auto& [id, sandbox] : sandboxes_) {
    if (sandbox.config.metadata.uid != pod_uid) continue;
    sandbox.status.state = SandboxState::kNotReady;
    for (auto& [cid, container] : containers_)
      if (container.sandbox_id == id && container.status.state == ContainerState::kRunning)
        Exit(container, 137, "Error");
  }
}

void FakeRuntime::ExitOnStart(const std::string& name, int exit_code) {
  MutexLock lock(mutex_);
  exit_on_start_[name] = exit_code;
}

void FakeRuntime::SetExec(
    std::function<Result<ExecResult>(const std::string&, const std::vector<std::string>&)> exec) {
  MutexLock lock(mutex_);
  exec_ = std::move(exec);
}

void FakeRuntime::SetReady(bool runtime, bool network) {
  MutexLock lock(mutex_);
  runtime_ready_ = runtime;
  network_ready_ = network;
}

std::vector<std::string> FakeRuntime::Calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

size_t FakeRuntime::Count(const std::string& call) const {
  MutexLock lock(mutex_);
  return std::count(calls_.begin(), calls_.end(), call);
}

ContainerConfig FakeRuntime::LastConfig(const std::string& name) const {
  MutexLock lock(mutex_);
  const ContainerEntry* last = nullptr;
  for (const auto& [id, container] : containers_)
    if (container.config.name == name && (!last || container.status.created_at > last->status.created_at))
      last = &container;
  return last ? last->config : ContainerConfig();
}

SandboxConfig FakeRuntime::LastSandboxConfig(const std::string& pod_uid) const {
  MutexLock lock(mutex_);
  const SandboxEntry* last = nullptr;
  for (const auto& [id, sandbox] : sandboxes_)
    if (sandbox.config.metadata.uid == pod_uid &&
        (!last || sandbox.status.created_at > last->status.created_at))
      last = &sandbox;
  return last ? last->config : SandboxConfig();
}

std::string FakeRuntime::RunningContainer(const std::string& pod_uid, const std::string& name) const {
  MutexLock lock(mutex_);
  for (const auto& [id, container] : containers_) {
    auto sandbox = sandboxes_.find(container.sandbox_id);
    if (sandbox != sandboxes_.end() && sandbox->second.config.metadata.uid == pod_uid &&
        container.config.name == name && container.status.state == ContainerState::kRunning)
      return id;
  }
  return "";
}

std::chrono::seconds FakeRuntime::LastGrace() const {
  MutexLock lock(mutex_);
  return last_grace_;
}

void FakeRuntime::Await(const std::function<bool()>& condition) {
  while (!condition()) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, std::chrono::milliseconds(20));
  }
}

Result<Version> FakeRuntime::GetVersion(std::stop_token) { return Version{"fake", "1.0.0", "v1"}; }

Result<RuntimeStatus> FakeRuntime::Status(std::stop_token) {
  MutexLock lock(mutex_);
  RuntimeStatus status;
  status.conditions = {{"RuntimeReady", runtime_ready_, "", ""},
                       {"NetworkReady", network_ready_, network_ready_ ? "" : "NetworkPluginNotReady",
                        network_ready_ ? "" : "Network plugin returns error: cni plugin not initialized"}};
  return status;
}

Result<bool> FakeRuntime::CgroupDriver(bool&, std::stop_token) { return false; }

Result<std::string> FakeRuntime::RunPodSandbox(const SandboxConfig& config, const std::string&,
                                               std::stop_token) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Begin("RunPodSandbox", config.metadata.name));
  std::string id = "sandbox" + std::to_string(next_id_);
  SandboxEntry entry;
  entry.config = config;
  entry.status.id = id;
  entry.status.metadata = config.metadata;
  entry.status.state = SandboxState::kReady;
  entry.status.created_at = NowNanos();
  entry.status.network = config.namespaces.network;
  if (config.namespaces.network != NamespaceMode::kNode)
    entry.status.ips = {"10.99.0." + std::to_string(next_id_ % 250 + 1)};
  entry.status.labels = config.labels;
  entry.status.annotations = config.annotations;
  ++next_id_;
  sandboxes_[id] = std::move(entry);
  return id;
}

Result<> FakeRuntime::StopPodSandbox(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = sandboxes_.find(id);
  RETURN_IF_ERROR(Begin("StopPodSandbox", it == sandboxes_.end() ? id : it->second.config.metadata.name));
  if (it == sandboxes_.end()) return {};
  it->second.status.state = SandboxState::kNotReady;
  for (auto& [cid, container] : containers_)
    if (container.sandbox_id == id && container.status.state == ContainerState::kRunning)
      Exit(container, 137, "Error");
  return {};
}

Result<> FakeRuntime::RemovePodSandbox(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = sandboxes_.find(id);
  RETURN_IF_ERROR(Begin("RemovePodSandbox", it == sandboxes_.end() ? id : it->second.config.metadata.name));
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
  RETURN_IF_ERROR(Begin("CreateContainer", config.name));
  auto sandbox = sandboxes_.find(sandbox_id);
  if (sandbox == sandboxes_.end()) return NoSuch("sandbox", sandbox_id);
  if (sandbox->second.status.state != SandboxState::kReady)
    return Error(Code::kInternal, "sandbox container \"" + sandbox_id + "\" is not running");
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
  containers_[id] = std::move(entry);
  return id;
}

Result<> FakeRuntime::StartContainer(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  RETURN_IF_ERROR(Begin("StartContainer", it == containers_.end() ? id : it->second.config.name));
  if (it == containers_.end()) return NoSuch("container", id);
  if (it->second.status.state != ContainerState::kCreated)
    return Error(Code::kInternal, "container " + id + " is not in created state");
  it->second.status.state = ContainerState::kRunning;
  it->second.status.started_at = NowNanos();
  if (auto exit = exit_on_start_.find(it->second.config.name); exit != exit_on_start_.end())
    Exit(it->second, exit->second, "");
  return {};
}

Result<> FakeRuntime::StopContainer(const std::string& id, std::chrono::seconds grace, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  RETURN_IF_ERROR(Begin("StopContainer", it == containers_.end() ? id : it->second.config.name));
  last_grace_ = grace;
  if (it == containers_.end()) return {};
  if (it->second.status.state == ContainerState::kRunning) Exit(it->second, 143, "Error");
  return {};
}

Result<> FakeRuntime::RemoveContainer(const std::string& id, std::stop_token) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  RETURN_IF_ERROR(Begin("RemoveContainer", it == containers_.end() ? id : it->second.config.name));
  containers_.erase(id);
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
    RETURN_IF_ERROR(Begin("ExecSync", name));
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

Result<> FakeRuntime::WatchEvents(const std::function<void(const ContainerEvent&)>&, std::stop_token) {
  return Error(Code::kUnimplemented, "unknown method GetContainerEvents");
}

Result<std::vector<Image>> FakeRuntime::ListImages(std::stop_token) {
  MutexLock lock(mutex_);
  std::vector<Image> out;
  for (const auto& [name, image] : images_) out.push_back(image);
  return out;
}

Result<std::optional<Image>> FakeRuntime::ImageStatus(const std::string& image, std::stop_token) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Begin("ImageStatus", image));
  auto it = images_.find(image);
  return it == images_.end() ? std::optional<Image>() : std::optional<Image>(it->second);
}

Result<std::string> FakeRuntime::PullImage(const std::string& image, const std::optional<AuthConfig>&,
                                           const SandboxConfig&, std::stop_token) {
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(Begin("PullImage", image));
    if (!pullable_.count(image)) return NoSuch("image", image);
  }
  AddImage(image);
  return "sha256:" + image;
}

Result<> FakeRuntime::RemoveImage(const std::string& image, std::stop_token) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Begin("RemoveImage", image));
  std::erase_if(images_, [&](const auto& item) { return item.first == image || item.second.id == image; });
  return {};
}

Result<std::vector<FilesystemUsage>> FakeRuntime::ImageFsInfo(std::stop_token) {
  return std::vector<FilesystemUsage>{{"/var/lib/fake", 1000, 10}};
}

}  // namespace keelson::kubelet::cri
