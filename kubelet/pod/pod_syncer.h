// Carries out the steps of a pod's worker: SyncPod makes a pod run as its spec says, SyncTerminatingPod stops it,
// SyncTerminatedPod releases what it had. PodWorkers decides when (pod_workers.h). Every step may run again after a
// failure, a cancellation or a restart of the kubelet.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/container/objects.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/image/image_manager.h"
#include "kubelet/pod/actions.h"
#include "kubelet/pod/container_start_limiter.h"
#include "kubelet/pod/user_namespaces.h"
#include "kubelet/probe/manager.h"
#include "kubelet/resize/resize_queue.h"
#include "kubelet/resize/resizer.h"
#include "kubelet/status/generate.h"
#include "kubelet/status/manager.h"
#include "kubelet/status/termination_reason.h"
#include "kubelet/volume/volume_manager.h"
#include "kubelet/workers/executor.h"
#include "lib/base/mutex.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::kubelet {

// What is remembered of a pod between steps. One step of a pod runs at a time and owns it; members that other
// threads touch say so.
struct PodSyncState {
  // What the runtime has of the pod; never null. Behind what this kubelet did unless `runtime_known`.
  std::shared_ptr<const PodRuntimeStatus> runtime = std::make_shared<PodRuntimeStatus>();
  bool runtime_known = false;
  bool started = false;                    // this kubelet may have made something for the pod
  std::atomic<bool> admitted{false};       // read by other threads
  bool rejected = false;                   // by admission; its status says so
  bool allocation_restored = false;        // ResizeState of an earlier kubelet has been read
  int64_t counted_resize_generation = -1;  // metadata.generation of the last resize that metrics count
  bool resync_only = false;                // nothing happened since the last sync but that time passed
  int quick_resyncs = 0;        // left: resyncs soon after a start, to see a container's early exit
  bool restarting_all = false;  // PodActions::restart_all_containers is being carried out
  std::optional<TerminationReason> termination_reason;  // set: the node terminates the pod
  std::string runtime_handler;                          // of its RuntimeClass
  std::string reported_mount_error;                  // of the last FailedMount event, which is not repeated
  std::map<std::string, WaitingReason> waiting;      // by container
  std::map<std::string, std::string> image_volumes;  // volume -> reference of its image
  // Containers that the runtime does not remove: id -> time of the first refusal.
  std::map<std::string, SteadyTime> failed_removals;

  Mutex status_mutex;       // held from reading the probes' results until the status made of them is set
  Mutex terminating_mutex;  // held while SyncTerminatingPod or UpdateTerminatingStatus uses the above
  bool stopping_containers KEELSON_GUARDED_BY(terminating_mutex) =
      false;  // SyncTerminatingPod waits for containers
};

struct SyncResult {
  std::optional<std::chrono::milliseconds> requeue_after;  // sync again after this
  bool terminal = false;                                   // Succeeded or Failed: no container will run again
};

class PodSyncer {  // thread safe for different pods
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  // All thread safe; references have to outlive the syncer.
  struct Dependencies {
    cri::RuntimeService& runtime;
    ImageManager& images;
    VolumeManager& volumes;
    PodCgroups& cgroups;
    ObjectSource& objects;
    HandlerRunner& handlers;
    ProbeManager& probes;
    StatusManager& statuses;
    Executor& executor;
    ContainerStartLimiter& start_limiter;
    std::function<NodeContext()> node;
    // Why the node rejects the pod; nullopt: it admits it.
    std::function<std::optional<k8s::AdmitFailure>(const corev1::Pod& pod)> admit;
    // `container` is empty for events of the pod as a whole.
    std::function<void(const corev1::Pod& pod, const std::string& container, const std::string& type,
                       const std::string& reason, const std::string& message)>
        event;
    // Called with what the runtime has of the pod, before its status is reported.
    std::function<void(const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status)>
        set_runtime_status;
    // Whether the pod is as in `status`, as far as the PLEG knows without asking the runtime.
    std::function<bool(const std::string& uid, const PodRuntimeStatus& status)> runtime_unchanged;
    // Whether the PLEG knows that the runtime had nothing of the pod before this kubelet touched it.
    std::function<bool(const std::string& uid)> not_in_runtime;
    // The runtime's handler for a RuntimeClass; "" for "".
    std::function<Result<std::string>(const std::string& runtime_class)> runtime_handler;
    UserNamespaces& user_namespaces;
    Allocations& allocations;
    ResizeQueue& resizes;
    // Readies the devices of the pod's ResourceClaims. An error: no container of the pod may start yet.
    std::function<Result<>(const corev1::Pod& pod, std::stop_token stop)> prepare_dynamic_resources;
    // The functions below are the container manager's, and may be empty.
    // Adds the CPUs, memory and devices that the container was given.
    std::function<Result<>(const corev1::Pod& pod, const corev1::Container& container,
                           cri::ContainerConfig& config, std::stop_token stop)>
        configure_container;
    std::function<void(const std::string& uid)> release_resources;
    std::function<void(const std::string& uid, corev1::PodStatus& status)> update_resource_status;
  };
  struct Options {
    std::chrono::milliseconds crash_backoff_first{std::chrono::seconds(10)},
        crash_backoff_max{std::chrono::seconds(300)};
    std::string runtime_name = "containerd";
    int kept_runs = 2;  // records of each container that CollectDeadContainers keeps, the latest included
  };
  PodSyncer(Dependencies dependencies, const Options& options, Clock& clock = Clock::Real());

  // One pass: admits the pod if that has not been done, compares it with the runtime, acts, and reports its
  // status. Failures of single containers go into the status and requeue the pod; an error means that the pass
  // was cut short (kCancelled: by `stop`).
  Result<SyncResult> SyncPod(const PodPtr& pod, PodSyncState& state, std::stop_token stop);
  // Puts the probes' latest results into the last reported status. From any thread, also while a step of the pod
  // runs. Does nothing before the first report.
  void UpdateReadinessStatus(const PodPtr& pod, PodSyncState& state);
  // Runs preStop hooks, stops all containers within `grace`, then the sandbox, and reports the final status.
  // An error: something may still run.
  Result<> SyncTerminatingPod(const PodPtr& pod, PodSyncState& state, std::chrono::seconds grace,
                              std::stop_token stop);
  // Reports which containers have ended by now. From any thread while SyncTerminatingPod waits for containers;
  // does nothing at other times.
  void UpdateTerminatingStatus(const PodPtr& pod, PodSyncState& state, std::stop_token stop);
  // After SyncTerminatingPod: unmounts volumes, removes directories and cgroup, releases resources.
  Result<> SyncTerminatedPod(const PodPtr& pod, PodSyncState& state, std::stop_token stop);
  // After SyncTerminatedPod, once the pod's source has removed it: removes containers, sandboxes and logs.
  Result<> RemoveFromRuntime(const std::string& uid, std::stop_token stop);
  // Removes old records of containers beyond Options::kept_runs, and old sandboxes. Failures are left for the
  // next time.
  void CollectDeadContainers(const PodPtr& pod, PodSyncState& state, std::stop_token stop);

 private:
  friend class PodSyncTask;
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod, PodSyncState& state);
  // The pod with the resources that are allocated to it by now (pod_resize.cc).
  PodPtr Granted(const PodPtr& pod, PodSyncState& state);
  Dependencies deps_;
  const Options options_;
  Clock& clock_;
  Backoff crash_backoff_;
  Mutex admission_mutex_;  // one admission at a time
};

}  // namespace keelson::kubelet
