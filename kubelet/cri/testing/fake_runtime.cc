#include "kubelet/cri/testing/fake_runtime.h"

#include <algorithm>

namespace keelson::kubelet::cri {

Error FakeRuntime::NoSuch(const std::string& what, const std::string& id) {
  return Error(Code::kNotFound, what + " " + id);
}

// Strictly increasing, as creation times order attempts.
int64_t FakeRuntime::NowNanos() {
  int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.Now().time_since_epoch()).count();
  last_time_ = follow_clock_ ? now : std::max(now, last_time_ + 1);
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
  image.id = (as_crio_ ? "" : "sha256:") + name;
  image.repo_tags = {name};
  image.repo_digests = {name + "@sha256:digest"};
  image.size = 1000;
  image.uid = uid;
  images_[name] = image;
}

void FakeRuntime::AnswerAsCrio() {
  MutexLock lock(mutex_);
  as_crio_ = true;
}

void FakeRuntime::SetPullable(const std::string& name, const std::string& user) {
  MutexLock lock(mutex_);
  pullable_[name] = user;
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
  Happened(container, ContainerEvent::Type::kStopped);
}

void FakeRuntime::Happened(const ContainerEntry& container, ContainerEvent::Type type) {
  auto sandbox = sandboxes_.find(container.sandbox_id);
  if (events_supported_ && sandbox != sandboxes_.end()) {
    events_.push_back(
        {container.status.id, type, events_name_pods_ ? sandbox->second.config.metadata.uid : std::string()});
  }
  changed_.notify_all();
}

void FakeRuntime::SupportEvents(bool name_pods) {
  MutexLock lock(mutex_);
  events_name_pods_ = name_pods;
  events_supported_ = true;
}

void FakeRuntime::BreakEvents() {
  MutexLock lock(mutex_);
  ++streams_broken_;
  changed_.notify_all();
}

void FakeRuntime::AwaitStreams(int opened) {
  MutexLock lock(mutex_);
  while (streams_opened_ < opened) changed_.wait(mutex_);
}

void FakeRuntime::SetFeatures(std::vector<RuntimeHandler> handlers, bool supplemental_groups_policy) {
  MutexLock lock(mutex_);
  handlers_ = std::move(handlers);
  supplemental_groups_policy_ = supplemental_groups_policy;
}

std::string FakeRuntime::HandlerOf(const std::string& pod_uid) const {
  MutexLock lock(mutex_);
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.config.metadata.uid == pod_uid) return sandbox.handler;
  }
  return "";
}

void FakeRuntime::ExitContainer(const std::string& pod_uid, const std::string& name, int exit_code,
                                const std::string& reason) {
  MutexLock lock(mutex_);
  for (auto& [id, container] : containers_) {
    auto sandbox = sandboxes_.find(container.sandbox_id);
    if (sandbox == sandboxes_.end() || sandbox->second.config.metadata.uid != pod_uid) continue;
    if (container.config.name == name && container.status.state == ContainerState::kRunning) {
      Exit(container, exit_code, reason);
    }
  }
}

void FakeRuntime::KillSandbox(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  for (auto& [id, sandbox] : sandboxes_) {
    if (sandbox.config.metadata.uid != pod_uid) continue;
    sandbox.status.state = SandboxState::kNotReady;
    for (auto& [cid, container] : containers_) {
      if (container.sandbox_id == id && container.status.state == ContainerState::kRunning) {
        Exit(container, 137, "Error");
      }
    }
  }
}

void FakeRuntime::ExitOnStart(const std::string& name, std::optional<int> exit_code) {
  MutexLock lock(mutex_);
  exit_on_start_.erase(name);
  if (exit_code) exit_on_start_[name] = *exit_code;
}

void FakeRuntime::AbandonStart(const std::string& name, const std::string& message) {
  MutexLock lock(mutex_);
  abandoned_starts_[name] = message;
}

void FakeRuntime::KeepHalfStart(const std::string& name) {
  MutexLock lock(mutex_);
  half_starts_.insert(name);
}

bool FakeRuntime::KillProcesses(const std::string& id) {
  MutexLock lock(mutex_);
  auto it = containers_.find(id);
  if (it == containers_.end()) return false;
  ContainerEntry& entry = it->second;
  if (!entry.half_started && entry.status.state != ContainerState::kRunning) return false;
  entry.half_started = false;
  Exit(entry, 137, "Error");
  return true;
}

void FakeRuntime::FollowClock() {
  MutexLock lock(mutex_);
  follow_clock_ = true;
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
  for (const auto& [id, container] : containers_) {
    if (container.config.name == name && (!last || container.status.created_at > last->status.created_at)) {
      last = &container;
    }
  }
  return last ? last->config : ContainerConfig();
}

SandboxConfig FakeRuntime::LastSandboxConfig(const std::string& pod_uid) const {
  MutexLock lock(mutex_);
  const SandboxEntry* last = nullptr;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.config.metadata.uid == pod_uid &&
        (!last || sandbox.status.created_at > last->status.created_at)) {
      last = &sandbox;
    }
  }
  return last ? last->config : SandboxConfig();
}

std::string FakeRuntime::RunningContainer(const std::string& pod_uid, const std::string& name) const {
  MutexLock lock(mutex_);
  for (const auto& [id, container] : containers_) {
    auto sandbox = sandboxes_.find(container.sandbox_id);
    if (sandbox != sandboxes_.end() && sandbox->second.config.metadata.uid == pod_uid &&
        container.config.name == name && container.status.state == ContainerState::kRunning) {
      return id;
    }
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

Result<std::vector<Image>> FakeRuntime::ListImages(std::stop_token) {
  MutexLock lock(mutex_);
  std::vector<Image> out;
  for (const auto& [name, image] : images_) out.push_back(image);
  return out;
}

Result<std::optional<Image>> FakeRuntime::ImageStatus(const std::string& image, std::stop_token) {
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Begin("ImageStatus", image));
  for (const auto& [name, known] : images_) {
    if (name == image || known.id == image || known.repo_digests.front() == image) {
      return std::optional(known);
    }
  }
  return std::optional<Image>();
}

Result<std::string> FakeRuntime::PullImage(const std::string& image, const std::optional<AuthConfig>& auth,
                                           const SandboxConfig&, std::stop_token) {
  {
    MutexLock lock(mutex_);
    KEELSON_RETURN_IF_ERROR(Begin("PullImage", image));
    auto it = pullable_.find(image);
    if (it == pullable_.end()) return NoSuch("image", image);
    if (!it->second.empty() && (!auth || auth->username != it->second)) {
      return Error(Code::kForbidden, "pull access denied");
    }
  }
  AddImage(image);
  MutexLock lock(mutex_);
  const Image& pulled = images_[image];
  return as_crio_ ? pulled.repo_digests.front() : pulled.id;
}

Result<> FakeRuntime::RemoveImage(const std::string& image, std::stop_token) {
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Begin("RemoveImage", image));
  std::erase_if(images_, [&](const auto& item) { return item.first == image || item.second.id == image; });
  return {};
}

Result<ImageFilesystems> FakeRuntime::ImageFsInfo(std::stop_token) {
  return ImageFilesystems{{{"/var/lib/fake", 1000, 10}}, {{"/var/lib/fake", 1000, 10}}};
}

}  // namespace keelson::kubelet::cri
