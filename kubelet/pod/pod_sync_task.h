// One pass over one pod: looks at the runtime, plans (actions.h), acts, looks again, reports. A new one for each
// pass, and used by one thread.
#pragma once

#include "kubelet/pod/pod_syncer.h"

namespace keelson::kubelet {

class ContainerKiller;

// The pod with the addresses that its node and its sandbox have by now: what variables and volumes refer to.
corev1::Pod PodWithAddresses(const corev1::Pod& pod, const NodeContext& node, std::vector<std::string> ips);
// terminationGracePeriodSeconds, or its default.
std::chrono::seconds GraceOf(const corev1::PodSpec& spec);

class PodSyncTask {
 public:
  // All references have to outlive the task.
  PodSyncTask(PodSyncer::Dependencies& deps, const PodSyncer::Options& options, Clock& clock,
              Backoff& backoff, const PodSyncer::PodPtr& pod, PodSyncState& state, std::stop_token stop);

  // The pass of PodSyncer::SyncPod, after admission.
  Result<SyncResult> Run();
  // Asks the runtime what it has of the pod, and sets state_.runtime.
  Result<> RefreshRuntimeStatus();
  // Sets state_.runtime to what the runtime has answered, and tells the PLEG and others.
  Result<> SetRuntimeStatus(Result<PodRuntimeStatus> answer);
  // Generates the pod's status and hands it to the status manager. `terminal`: nothing of the pod runs any more,
  // so the status may report its end.
  corev1::PodStatus ReportStatus(bool terminal);

 private:
  // pod_report.cc. Reports what the pass has found before it acts, which may take minutes.
  void ReportStatusBefore(const PodActions& actions);
  corev1::PodStatus Report(bool terminal, bool more_to_do, StatusManager::When when);

  // pod_sandbox.cc. What has to exist before the first container starts: directories, cgroup, sandbox, volumes.
  // Volumes are mounted while the runtime creates the sandbox. A failure to mount goes into volumes_.
  Result<> EnsureSandboxAndVolumes(const PodActions& actions, std::string& sandbox_id);
  Result<> PrepareDynamicResources();
  // Sets sandbox_config_. `fresh`: for a sandbox that is about to be created.
  Result<> GenerateSandboxConfig(bool fresh, uint32_t attempt);
  Result<> CreatePodSandbox(std::string& sandbox_id);
  void MountVolumes(const std::vector<std::string>& pod_ips);  // sets volumes_ only, on any thread
  void RefreshVolumes();                                       // updates the contents of mounted volumes
  void ReportMountError();

  // Kills what the plan says.
  Result<> KillContainers(const PodActions& actions);
  bool RestartAllInBackOff();
  Result<> RestartAllContainers(ContainerKiller& killer, std::chrono::seconds grace);
  bool PastDeadline();  // or terminated by the node for another reason

  // pod_resize.cc. In-place resize: adds containers that have to restart for it to `actions`.
  void PlanResize(PodActions& actions);
  void Resize();
  void ReportResize(const corev1::Pod& base, corev1::PodStatus& status);

  // container_start.cc. Starts one container, or sets why it waits.
  void StartContainer(const corev1::Container& container, const std::string& sandbox_id);
  // Whether the container waits in CrashLoopBackOff; `last` is its latest run, or null.
  bool DoBackOff(const corev1::Container& container, const ContainerRecord* last);
  void ResetBackOffs();
  // False: the container waits for the image.
  bool EnsureImageExists(const corev1::Container& container, const std::string& name,
                         const std::string& policy, EnsuredImage& image);
  bool EnsureImageVolumesExist(const corev1::Container& container);
  // Removes a container that an earlier kubelet created and did not start. False: the runtime refuses for now.
  bool RemoveUnstarted(const corev1::Container& container, const ContainerRecord& made);
  bool RemovalHasFailedLong(const ContainerRecord& made) const;
  // The id of the container whose processes an ephemeral container shares; "": none.
  Result<std::string> DebugTarget(const std::string& container) const;
  // Returns the id. `config_error`: the failure is the spec's, and the runtime was not asked.
  Result<std::string> CreateContainer(const corev1::Container& container, const EnsuredImage& image,
                                      int restarts, const std::string& sandbox_id, bool& config_error);
  Result<std::string> CreateContainerWith(const std::string& message_file, const corev1::Container& container,
                                          const EnsuredImage& image, int restarts,
                                          const std::string& sandbox_id, bool& config_error);
  Result<> RunPostStart(const corev1::Container& container, const std::string& id);
  std::string HookAddress() const;
  std::vector<corev1::Secret> PullSecrets();

  void SetWaiting(const std::string& container, const std::string& reason, const std::string& message);
  void RequeueAfter(std::chrono::milliseconds after);  // or sooner, if something else asked for that
  void PlanQuickResync(const PodActions& actions);
  // The container or ephemeral container of that name, perhaps made in `storage`; null: there is none.
  const corev1::Container* FindContainer(const std::string& name, corev1::Container& storage) const;
  void Event(const std::string& container, const char* type, const char* reason, const std::string& message);

  PodSyncer::Dependencies& deps_;
  const PodSyncer::Options& options_;
  Clock& clock_;
  Backoff& backoff_;
  const PodSyncer::PodPtr& pod_;
  PodSyncState& state_;
  std::stop_token stop_;
  const NodeContext node_;
  cri::SandboxConfig sandbox_config_;
  Result<VolumePaths> volumes_;
  SyncResult result_;
  ResizePlan resize_;
  std::vector<std::string> made_;  // ids of containers created in this pass
  bool removed_ = false;           // a container's record was removed in this pass
};

}  // namespace keelson::kubelet
