// Decides what is done to each pod, and when. One worker a pod at a time, keyed by UID.
//
// clang-format off
//   Update(pod) --> Syncing -------------------> Terminating ----------> Terminated -----------> Finished
//                   sandbox, containers,     .-> preStop,                volumes unmounted,      nothing is left
//                   probes, status           |   StopContainer,          cgroup removed          on the node but
//                      |                     |   StopPodSandbox,                                 the runtime's records
//                      | deleted in the API, |   final status                                       |
//                      | or ended, or        |      |  ^                                            | the pod has gone
//                      | rejected            |      |  | a shorter grace                            | from the API
//                      '---------------------'      '--' period begins anew                         v
//                                                                                     records are removed, forgotten
// clang-format on
//
// A pod never goes back. A new pod of the same name has another UID and is held until this one is Finished
// (static pods), or runs beside its end (pods of the API, whose names are free only after it).
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
#include "kubelet/pod/pod_census.h"
#include "kubelet/pod/pod_syncer.h"
#include "lib/client/workqueue.h"

namespace keelson::kubelet {

class PodWorkers {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  struct Options {
    std::chrono::milliseconds sync_frequency{std::chrono::minutes(1)};
    std::chrono::milliseconds retry_first{250}, retry_max{std::chrono::seconds(10)};
    std::function<void(const std::string& uid)> forgotten;  // nothing is left of a pod on the node
  };
  PodWorkers(PodSyncer& syncer, StatusManager& statuses, Executor& executor, const Options& options,
             Clock& clock = Clock::Real());

  void Update(PodPtr pod);              // as the API has it now
  void Remove(const std::string& uid);  // the API has it no more
  void Touch(const std::string& uid);   // something happened to it on the node
  // A probe of it has found something else, which is told also while its worker is busy.
  void ProbesChanged(const std::string& uid);
  // The node itself has to be rid of it: it becomes Failed for this reason. False when it ends already.
  bool Evict(const std::string& uid, PodEnding ending, std::chrono::seconds grace);
  // Its containers, volumes and cgroups are gone, whether or not the API still has it.
  bool CleanedUp(const std::string& uid) const;
  // The runtime has a pod that nobody asked for, since the kubelet was away when it was deleted.
  void Orphan(const PodRuntimeStatus& status);

  std::vector<PodPtr> Pods() const;                                   // all that are known and not orphans
  PodPtr Find(const std::string& ns, const std::string& name) const;  // the newest; null when there is none
  void Seen(const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status);  // by its worker
  std::shared_ptr<const PodRuntimeStatus> Runtime(const std::string& uid) const;      // as last seen, or null
  std::set<std::string> Uids() const;
  PodCensus Census() const;
  // Admitted, not ended, not deleted: what the node's resources are spoken for by, as the scheduler sees it.
  std::vector<PodPtr> Active(const std::string& except_uid) const;

  void Run(std::stop_token stop);

 private:
  enum class State { kSyncing, kTerminating, kTerminated, kFinished };
  struct Entry {
    const char* work = "create";  // what the next step is, to those who look at /metrics
    Stopwatch known;
    uint64_t touched = 0;  // how often somebody has said that there is something to see
    bool routine = false;  // nobody has since the last step, which had nothing to come back for
    PodPtr pod;
    State state = State::kSyncing;
    bool end = false;  // leave Syncing
    bool gone = false, orphan = false, ended = false;
    bool telling = false;  // somebody is about to say how far its end has come
    std::optional<std::chrono::seconds> grace;
    std::optional<PodEnding> ending;
    std::stop_source stop;
    PodMemory memory;                                 // of the worker
    std::shared_ptr<const PodRuntimeStatus> runtime;  // what others see of it
  };
  struct Work;

  void Reconcile(const std::string& uid, std::stop_token stop);
  Result<std::optional<std::chrono::milliseconds>> Step(const std::string& uid,
                                                        const std::shared_ptr<Entry>& entry,
                                                        std::stop_token stop);
  Result<std::optional<std::chrono::milliseconds>> SyncStep(const std::shared_ptr<Entry>& entry,
                                                            const PodPtr& pod, std::stop_token stop);
  void CountStep(Entry& entry, double took);
  void Touched(Entry& entry) REQUIRES(mutex_);
  void TellOfEnding(const std::shared_ptr<Entry>& entry);
  void End(Entry& entry) REQUIRES(mutex_);
  std::chrono::seconds GraceOf(const Entry& entry) const REQUIRES(mutex_);

  PodSyncer& syncer_;
  StatusManager& statuses_;
  Executor& executor_;
  const Options options_;
  client::WorkQueue queue_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ GUARDED_BY(mutex_);
  int running_ GUARDED_BY(mutex_) = 0;
  bool runs_ GUARDED_BY(mutex_) = false;
  CondVar idle_;
};

}  // namespace keelson::kubelet
