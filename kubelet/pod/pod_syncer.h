// The effects on one pod: makes it run as its spec says, takes it down, cleans up after it. Who calls decides
// when (pod_workers.h); here is how. Everything may be called again after a failure or a restart.
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
#include "kubelet/pod/start_gate.h"
#include "kubelet/pod/user_namespaces.h"
#include "kubelet/probe/manager.h"
#include "kubelet/resize/resize_queue.h"
#include "kubelet/resize/resizer.h"
#include "kubelet/status/ending.h"
#include "kubelet/status/generate.h"
#include "kubelet/status/manager.h"
#include "kubelet/volume/volume_manager.h"
#include "kubelet/workers/executor.h"
#include "lib/base/mutex.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::kubelet {

// What is remembered of a pod between calls; only one call for a pod is under way at a time.
struct PodMemory {
  bool inspected = false;             // `runtime` tells of all that was done so far
  bool begun = false;                 // this kubelet may have made something for it
  std::atomic<bool> admitted{false};  // others see it
  bool rejected = false;              // and has been told so
  bool restored = false;              // what it was granted before is known
  int64_t counted_wish = -1;          // the spec's generation of the latest wish for a resize
  std::shared_ptr<const PodRuntimeStatus> runtime = std::make_shared<PodRuntimeStatus>();  // never null
  std::map<std::string, WaitingReason> waiting;
  int quick_looks = 0;  // looks soon after own actions whose end no event will tell
  bool sandbox_failed = false;
  std::optional<PodEnding> ending;
  std::string mount_error;  // told last, so as not to tell it again and again
  std::string handler;      // of its RuntimeClass
  bool restarting_all = false;
  bool routine = false;                              // this look is only because some time has passed
  std::map<std::string, std::string> image_volumes;  // volume -> reference of its image
  std::map<std::string, SteadyTime>
      refused;      // containers that the runtime does not remove, by id -> since when
  Mutex reporting;  // from the look at what probes have found until the status that is made of it is set
  Mutex telling;
  bool stopping GUARDED_BY(telling) = false;  // Terminate waits for containers
};

struct SyncResult {
  std::optional<std::chrono::milliseconds> again;  // look again after this
  bool ended = false;                              // Succeeded or Failed: no container will run again
};

class PodSyncer {  // thread safe for different pods
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
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
    StartGate& starts;
    std::function<NodeContext()> node;
    // Reason why the node does not take a pod; empty: it does.
    std::function<std::optional<k8s::AdmitFailure>(const corev1::Pod& pod)> admit;
    // `container` is empty for events of the pod as a whole.
    std::function<void(const corev1::Pod& pod, const std::string& container, const std::string& type,
                       const std::string& reason, const std::string& message)>
        event;
    // What has been seen of a pod's sandbox and containers, before its status tells of it: others need not
    // look.
    std::function<void(const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status)> seen;
    // As far as is known without asking the runtime, nothing has changed since.
    std::function<bool(const std::string& uid, const PodRuntimeStatus& status)> unchanged;
    // The runtime has nothing of the pod, but for what this kubelet has begun to make since.
    std::function<bool(const std::string& uid)> unknown;
    // The runtime's handler for a RuntimeClass; "" for "".
    std::function<Result<std::string>(const std::string& runtime_class)> handler;
    UserNamespaces& user_namespaces;
    Allocations& allocations;
    ResizeQueue& resizes;
    // CPUs, memory and devices of the container's own go into what the runtime is told; may be empty, as
    // those below.
    std::function<Result<>(const corev1::Pod& pod, const corev1::Container& container,
                           cri::ContainerConfig& config, std::stop_token stop)>
        configure;
    std::function<void(const std::string& uid)> release;  // the pod no longer needs them
    std::function<void(const std::string& uid, corev1::PodStatus& status)> complete_status;
  };
  struct Options {
    std::chrono::milliseconds crash_backoff_first{std::chrono::seconds(10)},
        crash_backoff_max{std::chrono::seconds(300)};
    std::string runtime_name = "containerd";
    int kept_runs = 2;  // of each container, the latest with them
  };
  PodSyncer(Dependencies dependencies, const Options& options, Clock& clock = Clock::Real());

  Result<SyncResult> Sync(const PodPtr& pod, PodMemory& memory, std::stop_token stop);
  // From any thread, whatever else is done to the pod: what probes have found goes into the status that was
  // told last.
  void TellReadiness(const PodPtr& pod, PodMemory& memory);
  // Runs preStop hooks, stops all containers within `grace`, then the sandbox; reports the final status.
  Result<> Terminate(const PodPtr& pod, PodMemory& memory, std::chrono::seconds grace, std::stop_token stop);
  // Meanwhile, from any thread: what has become of the containers by now, and of their readiness, goes into
  // the status. Does nothing at other times.
  void TellOfEnding(const PodPtr& pod, PodMemory& memory, std::stop_token stop);
  // After Terminate: volumes, directories and cgroup go.
  Result<> CleanUp(const PodPtr& pod, PodMemory& memory, std::stop_token stop);
  // After CleanUp, once the API has no such pod: containers, sandboxes and logs go too.
  Result<> RemoveFromRuntime(const std::string& uid, std::stop_token stop);
  // Old runs of containers, all but the latest two; old sandboxes.
  void CollectGarbage(const PodPtr& pod, PodMemory& memory, std::stop_token stop);

 private:
  friend class PodSyncTask;
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod, PodMemory& memory);
  // The pod with the resources that it may have by now.
  PodPtr Granted(const PodPtr& pod, PodMemory& memory);
  Dependencies deps_;
  const Options options_;
  Clock& clock_;
  Backoff crash_backoff_;
  Mutex admission_;
};

}  // namespace keelson::kubelet
