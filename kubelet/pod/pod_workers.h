// Decides what happens to each pod, and when: one worker per pod UID, which runs one step at a time.
//
// clang-format off
//   UpdatePod --> SyncPod ---------------------> TerminatingPod -------> TerminatedPod --------> Finished
//                 sandbox, containers,        .-> preStop,               volumes unmounted,      only the runtime's
//                 probes, status              |   StopContainer,         cgroup removed          records are left
//                      |                      |   StopPodSandbox,                                     |
//                      | termination_requested|   final status                                        | removed
//                      |                      |      |  ^                                             v
//                      '----------------------'      '--' shorter grace period             records are removed,
//                                                         starts the step again            the worker is forgotten
// clang-format on
//
// What requests the termination of a pod:
//   - the API server sets its deletionTimestamp, or its phase is Succeeded or Failed (UpdatePod)
//   - its source (API server, manifest) no longer has it (RemovePod)
//   - the node evicts it (EvictPod: eviction, preemption, node shutdown)
//   - its containers have ended for good, its deadline has passed, or the node has rejected it (PodSyncer::SyncPod)
//   - no source knows it, but the runtime does (TerminateRuntimePod)
//
// A pod never goes back to an earlier state. A new pod of the same name has another UID. A static pod waits until
// the old one is forgotten; a pod of the API server may run beside the end of the old one.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/metrics/stopwatch.h"
#include "kubelet/pod/pod_syncer.h"
#include "kubelet/pod/pod_worker_metrics.h"
#include "lib/client/workqueue.h"

namespace keelson::kubelet {

// What a pod's worker does next. The names are those of upstream's pod_workers.go.
enum class PodWorkerState {
  kSyncPod,         // make the pod run as its spec says
  kTerminatingPod,  // stop its containers; no container starts any more
  kTerminatedPod,   // no container runs: release volumes, cgroup and devices
  kFinished,        // nothing but the runtime's records is left; they go once the pod's source has removed it
};

class PodWorkers {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  struct Options {
    std::chrono::milliseconds sync_frequency{std::chrono::minutes(1)};
    std::chrono::milliseconds retry_first{250}, retry_max{std::chrono::seconds(10)};
    // Called without locks, on a worker's thread, once nothing of a pod is left on the node.
    std::function<void(const std::string& uid)> on_forgotten;
  };
  // The references have to outlive the workers.
  PodWorkers(PodSyncer& syncer, StatusManager& statuses, Executor& executor, const Options& options,
             Clock& clock = Clock::Real());

  // The pod as its source (API server or manifest) has it now. Creates its worker if it has none. An update
  // of nothing but the status needs no sync.
  void UpdatePod(PodPtr pod);
  // The pod's source no longer has it. Does nothing for an unknown UID.
  void RemovePod(const std::string& uid);
  // Something happened to the pod on the node: syncs it soon. Does nothing for an unknown UID.
  void RequestSync(const std::string& uid);
  // A probe of the pod has a new result. Updates readiness at once, also while the worker is busy, and syncs
  // the pod soon.
  void ProbeResultsChanged(const std::string& uid);
  // Terminates the pod within `grace`; it becomes Failed with `reason`. False: the pod is unknown or
  // terminates already, and nothing changes.
  bool EvictPod(const std::string& uid, TerminationReason reason, std::chrono::seconds grace);
  // Terminates a pod that the runtime has and no source knows: it was deleted while no kubelet ran. Does
  // nothing if the pod has a worker.
  void TerminateRuntimePod(const PodRuntimeStatus& status);

  // Whether the pod's containers, volumes and cgroup are gone, or it is unknown. Its source may still have it.
  bool IsPodFinished(const std::string& uid) const;
  std::vector<PodPtr> Pods() const;  // all but those that only the runtime knows
  // The newest pod of that name; null when there is none.
  PodPtr Find(const std::string& ns, const std::string& name) const;
  std::set<std::string> Uids() const;  // of all pods with a worker
  // Admitted pods whose containers may run and whose phase is not final, except `except_uid`: what counts
  // against the node's resources, as the scheduler sees it.
  std::vector<PodPtr> ActivePods(const std::string& except_uid) const;
  // The worker reports what it last saw of the pod in the runtime. Does nothing for an unknown UID.
  void SetRuntimeStatus(const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status);
  // What the worker last saw; null for an unknown pod, or before its first look.
  std::shared_ptr<const PodRuntimeStatus> RuntimeStatus(const std::string& uid) const;
  PodCounts CountPods() const;  // for /metrics (pod_worker_metrics.cc)

  // Runs the workers until `stop`, and returns once none of their tasks is under way. Call once.
  void Run(std::stop_token stop);

 private:
  // All that is known of one pod, guarded by mutex_ except `sync_state`, which belongs to the worker's step.
  struct PodSyncStatus {
    PodPtr pod;  // as its source had it last
    PodWorkerState state = PodWorkerState::kSyncPod;

    // Why the pod leaves SyncPod, and how.
    bool termination_requested = false;  // the next step is TerminatingPod; never reset
    bool terminal = false;      // its phase is Succeeded or Failed, or will be: no container runs again
    bool removed = false;       // its source no longer has it
    bool runtime_only = false;  // no source ever told of it; `removed` is set too
    std::optional<std::chrono::seconds> grace_period;     // set when termination is requested; only shrinks
    std::optional<TerminationReason> termination_reason;  // set: evicted

    std::stop_source cancel;  // of the step that runs; replaced when a step has to start again

    // Whether the next sync may trust what the last one saw.
    uint64_t update_count = 0;  // updates and sync requests so far
    bool resync_only = false;   // none since the last sync, which also asked for no retry

    bool status_update_queued = false;      // a task will call UpdateTerminatingStatus
    const char* next_operation = "create";  // operation_type in kubelet_pod_worker_duration_seconds
    Stopwatch since_known;                  // for kubelet_pod_worker_start_duration_seconds

    PodSyncState sync_state;                                 // of PodSyncer
    std::shared_ptr<const PodRuntimeStatus> runtime_status;  // a copy of sync_state's, for other threads
  };

  // One step for the pod, and requeues it as the result says.
  void RunWorkerOnce(const std::string& uid, std::stop_token stop);
  // The step of the pod's state. Returns when the next one is due; nullopt: when something happens.
  Result<std::optional<std::chrono::milliseconds>> DoWork(const std::string& uid,
                                                          const std::shared_ptr<PodSyncStatus>& entry);
  Result<std::optional<std::chrono::milliseconds>> SyncPod(const std::shared_ptr<PodSyncStatus>& entry,
                                                           const PodPtr& pod, std::stop_token stop);
  void ObserveWorkDuration(PodSyncStatus& entry, double seconds);
  void MarkUpdated(PodSyncStatus& entry) KEELSON_REQUIRES(mutex_);
  void UpdateTerminatingStatus(const std::shared_ptr<PodSyncStatus>& entry);
  void RequestTermination(PodSyncStatus& entry) KEELSON_REQUIRES(mutex_);
  std::chrono::seconds GracePeriodOf(const PodSyncStatus& entry) const KEELSON_REQUIRES(mutex_);

  PodSyncer& syncer_;
  StatusManager& statuses_;
  Executor& executor_;
  const Options options_;
  client::WorkQueue queue_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<PodSyncStatus>> pod_sync_statuses_
      KEELSON_GUARDED_BY(mutex_);  // by UID
  int running_tasks_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool accepts_tasks_ KEELSON_GUARDED_BY(mutex_) = false;  // while Run runs
  CondVar idle_;                                           // running_tasks_ is 0
};

}  // namespace keelson::kubelet
