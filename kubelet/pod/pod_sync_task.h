// One pass over one pod: look, plan, act, look again, report.
#pragma once

#include "kubelet/pod/pod_syncer.h"

namespace keelson::kubelet {

class ContainerKiller;

// The pod as variables and volumes see it: with the addresses that its sandbox has got by now.
corev1::Pod PodWithAddresses(const corev1::Pod& pod, const NodeContext& node, std::vector<std::string> ips);
std::chrono::seconds GraceOf(const corev1::PodSpec& spec);

class PodSyncTask {
 public:
  PodSyncTask(PodSyncer::Dependencies& deps, const PodSyncer::Options& options, Clock& clock,
              Backoff& backoff, const PodSyncer::PodPtr& pod, PodMemory& memory, std::stop_token stop);

  Result<SyncResult> Run();
  Result<> Inspect();                                   // the runtime, into memory
  Result<> TakeIn(Result<PodRuntimeStatus> looked_at);  // what it says, likewise
  // What there is to say of the pod; the API is told of its end once nothing of it runs.
  corev1::PodStatus ReportStatus(bool terminal);

 private:
  // What a sync finds is not kept back until all that it does about it is done: that may take minutes.
  void ReportBefore(const PodActions& actions);
  corev1::PodStatus Report(bool terminal, bool more_to_do, StatusManager::When when);
  // What has to be there before the first container starts. Volumes are set up, and images asked for, while
  // the sandbox is being made.
  Result<> Prepare(const PodActions& actions, std::string& sandbox_id);
  Result<> BuildSandbox(bool fresh, uint32_t attempt);
  Result<> CreateSandbox(std::string& sandbox_id);
  void MountVolumes(const std::vector<std::string>& pod_ips);  // touches nothing but volumes_
  void RefreshVolumes();                                       // their content follows what it is made of
  void NoteVolumes();
  Result<> Kill(const PodActions& actions);
  bool RestartAllHeldBack();
  Result<> RestartAll(ContainerKiller& killer, std::chrono::seconds grace);
  bool PastDeadline();

  // In-place resize (pod_resize.cc): containers that have to begin anew for it are added to `actions`.
  void PlanResize(PodActions& actions);
  void Resize();
  void ReportResize(const corev1::Pod& base, corev1::PodStatus& status);

  // Starts one container, or notes why not.
  bool ForgetUnstarted(const corev1::Container& container, const ContainerRecord& made);
  bool HasBeenRefusedLong(const ContainerRecord& made) const;
  void Start(const corev1::Container& container, const std::string& sandbox_id);
  bool HeldBack(const corev1::Container& container, const ContainerRecord* last);
  void ForgetOldBackoffs();
  bool EnsureImage(const corev1::Container& container, const std::string& name, const std::string& policy,
                   EnsuredImage& image);
  bool EnsureImageVolumes(const corev1::Container& container);
  Result<std::string> DebugTarget(const std::string& container) const;
  Result<std::string> Create(const corev1::Container& container, const EnsuredImage& image, int restarts,
                             const std::string& sandbox_id, bool& config_error);
  Result<std::string> CreateWith(const std::string& message_file, const corev1::Container& container,
                                 const EnsuredImage& image, int restarts, const std::string& sandbox_id,
                                 bool& config_error);
  Result<> RunPostStart(const corev1::Container& container, const std::string& id);
  std::string HookAddress() const;
  void Wait(const std::string& container, const std::string& reason, const std::string& message);
  void Again(std::chrono::milliseconds after);
  const corev1::Container* Find(const std::string& name, corev1::Container& storage) const;
  std::vector<corev1::Secret> PullSecrets();
  void PlanQuickLook(const PodActions& actions);
  void Event(const std::string& container, const char* type, const char* reason, const std::string& message);

  PodSyncer::Dependencies& deps_;
  const PodSyncer::Options& options_;
  Clock& clock_;
  Backoff& backoff_;
  const PodSyncer::PodPtr& pod_;
  PodMemory& memory_;
  std::stop_token stop_;
  const NodeContext node_;
  cri::SandboxConfig sandbox_config_;
  Result<VolumePaths> volumes_;
  SyncResult result_;
  ResizePlan resize_;
  std::vector<std::string> made_;  // containers, by id
  bool removed_ = false;           // some record of a container
};

}  // namespace keelson::kubelet
