// A runtime in memory: sandboxes, containers and images with the states and transitions of a real one. Tests script
// failures and exits, and inspect the calls.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::cri {

class FakeRuntime : public RuntimeService, public ImageService {  // thread safe
 public:
  explicit FakeRuntime(Clock& clock = Clock::Real()) : clock_(clock) {}

  // ---- script ----
  void AddImage(const std::string& name, std::optional<int64_t> uid = {});
  // PullImage succeeds for these images; others fail with kNotFound. `user`: whose credentials the pull needs.
  void SetPullable(const std::string& name, const std::string& user = "");
  // The next call named `method` ("RunPodSandbox", ...) fails: once, or until cleared with nullopt.
  void Fail(const std::string& method, std::optional<Error> error, bool once = true);
  void ExitContainer(const std::string& pod_uid, const std::string& name, int exit_code,
                     const std::string& reason = "");
  void KillSandbox(const std::string& pod_uid);
  // Started containers of this name exit at once with this code; nullopt: they run again.
  void ExitOnStart(const std::string& name, std::optional<int> exit_code);
  // The next start of a container of this name is abandoned with `message`, as if the caller had gone.
  void AbandonStart(const std::string& name, const std::string& message);
  // The next start of a container of this name stops half way, as with containerd 1.6: the container stays created,
  // and cannot be removed until its process is killed.
  void KeepHalfStart(const std::string& name);
  // Kills all processes in the container's cgroup; false: there are none.
  bool KillProcesses(const std::string& id);
  // Times follow the clock even backwards; by default each is later than the one before.
  void FollowClock();
  void SetExec(std::function<Result<ExecResult>(const std::string& container_name,
                                                const std::vector<std::string>& command)>
                   exec);
  void SetReady(bool runtime, bool network);
  void SetFeatures(std::vector<RuntimeHandler> handlers, bool supplemental_groups_policy);
  // Reports images as CRI-O does: ids without "sha256:", and a pull returns a name with a digest.
  void AnswerAsCrio();
  void SupportEvents(bool name_pods = true);  // old runtimes have no events, or events without pods
  void BreakEvents();                         // all streams end
  void AwaitStreams(int opened);              // blocks until so many have been opened

  // ---- look ----
  std::vector<std::string> Calls() const;  // "RunPodSandbox web", "StartContainer main", ... in order
  size_t Count(const std::string& call) const;
  ContainerConfig LastConfig(const std::string& name) const;
  SandboxConfig LastSandboxConfig(const std::string& pod_uid) const;
  std::string RunningContainer(const std::string& pod_uid, const std::string& name) const;  // id or empty
  std::chrono::seconds LastGrace() const;
  std::string HandlerOf(const std::string& pod_uid) const;
  // Blocks until `condition` holds; checked after every call.
  void Await(const std::function<bool()>& condition);

  // ---- RuntimeService ----
  Result<Version> GetVersion(std::stop_token) override;
  Result<RuntimeStatus> Status(std::stop_token) override;
  Result<bool> CgroupDriver(bool& systemd, std::stop_token) override;
  Result<std::string> RunPodSandbox(const SandboxConfig&, const std::string&, std::stop_token) override;
  Result<> StopPodSandbox(const std::string& id, std::stop_token) override;
  Result<> RemovePodSandbox(const std::string& id, std::stop_token) override;
  Result<SandboxStatus> PodSandboxStatus(const std::string& id, std::stop_token) override;
  Result<std::vector<Sandbox>> ListPodSandbox(const Filter&, std::stop_token) override;
  Result<std::string> CreateContainer(const std::string&, const ContainerConfig&, const SandboxConfig&,
                                      std::stop_token) override;
  Result<> StartContainer(const std::string& id, std::stop_token) override;
  Result<> StopContainer(const std::string& id, std::chrono::seconds grace, std::stop_token) override;
  Result<> RemoveContainer(const std::string& id, std::stop_token) override;
  Result<ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token) override;
  Result<std::vector<Container>> ListContainers(const Filter&, std::stop_token) override;
  Result<> UpdateContainerResources(const std::string&, const LinuxResources&, std::stop_token) override;
  Result<> UpdateRuntimeConfig(const std::string& pod_cidrs, std::stop_token) override;
  Result<> ReopenContainerLog(const std::string&, std::stop_token) override;
  Result<std::vector<ContainerStats>> ListContainerStats(const Filter&, std::stop_token) override;
  Result<ExecResult> ExecSync(const std::string&, const std::vector<std::string>&, std::chrono::seconds,
                              std::stop_token) override;
  Result<std::string> Exec(const std::string&, const std::vector<std::string>&, const ExecOptions&,
                           std::stop_token) override;
  Result<std::string> Attach(const std::string&, const ExecOptions&, std::stop_token) override;
  Result<std::string> PortForward(const std::string&, const std::vector<int32_t>&, std::stop_token) override;
  Result<> WatchEvents(const std::function<void(const ContainerEvent&)>&, std::stop_token) override;

  // ---- ImageService ----
  Result<std::vector<Image>> ListImages(std::stop_token) override;
  Result<std::optional<Image>> ImageStatus(const std::string& image, std::stop_token) override;
  Result<std::string> PullImage(const std::string&, const std::optional<AuthConfig>&, const SandboxConfig&,
                                std::stop_token) override;
  Result<> RemoveImage(const std::string& image, std::stop_token) override;
  Result<ImageFilesystems> ImageFsInfo(std::stop_token) override;

 private:
  struct SandboxEntry {
    SandboxConfig config;
    SandboxStatus status;
    std::string handler;
  };
  struct ContainerEntry {
    std::string sandbox_id;
    ContainerConfig config;
    ContainerStatus status;
    bool half_started = false;
  };
  static Error NoSuch(const std::string& what, const std::string& id);
  void Happened(const ContainerEntry& container, ContainerEvent::Type type) KEELSON_REQUIRES(mutex_);
  Result<> Begin(const std::string& method, const std::string& detail) KEELSON_REQUIRES(mutex_);
  int64_t NowNanos() KEELSON_REQUIRES(mutex_);
  void Exit(ContainerEntry& container, int code, const std::string& reason) KEELSON_REQUIRES(mutex_);

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  int next_id_ KEELSON_GUARDED_BY(mutex_) = 1;
  int64_t last_time_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool follow_clock_ KEELSON_GUARDED_BY(mutex_) = false;
  std::map<std::string, SandboxEntry> sandboxes_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, ContainerEntry> containers_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, Image> images_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> pullable_ KEELSON_GUARDED_BY(mutex_);  // image -> user, may be empty
  std::map<std::string, std::pair<Error, bool>> failures_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, int> exit_on_start_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> abandoned_starts_ KEELSON_GUARDED_BY(mutex_);
  std::set<std::string> half_starts_ KEELSON_GUARDED_BY(mutex_);
  std::function<Result<ExecResult>(const std::string&, const std::vector<std::string>&)> exec_
      KEELSON_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ KEELSON_GUARDED_BY(mutex_);
  std::chrono::seconds last_grace_ KEELSON_GUARDED_BY(mutex_){0};
  bool runtime_ready_ KEELSON_GUARDED_BY(mutex_) = true;
  bool network_ready_ KEELSON_GUARDED_BY(mutex_) = true;
  std::vector<RuntimeHandler> handlers_ KEELSON_GUARDED_BY(mutex_);
  bool supplemental_groups_policy_ KEELSON_GUARDED_BY(mutex_) = false;
  bool as_crio_ KEELSON_GUARDED_BY(mutex_) = false;
  bool events_supported_ KEELSON_GUARDED_BY(mutex_) = false, events_name_pods_
                                                             KEELSON_GUARDED_BY(mutex_) = true;
  int streams_broken_ KEELSON_GUARDED_BY(mutex_) = 0, streams_opened_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::vector<ContainerEvent> events_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::cri
