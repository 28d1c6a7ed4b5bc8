// Which CPU and memory each container and the pod as a whole were granted, and which they really have
// (KEP-1287, KEP-5419). A pod's spec says what is wished for; a wish may have to wait, or cannot be met at
// all.
//
// What a container and its pod had when it was started is in annotations of the runtime's; only a pod that
// was resized since has a file, <pod's directory>/resources.json, which goes with the directory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/container/paths.h"
#include "kubelet/container/runtime_status.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// Why a pod's wish is not granted, or not yet in force.
struct ResizeState {
  std::string pending;  // Deferred, Infeasible; empty: granted
  std::string message;
  bool in_progress = false;
  std::string error;  // of what is in progress
  bool operator==(const ResizeState&) const = default;
};

class Allocations {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  explicit Allocations(Paths paths);

  // What the pod was granted before this kubelet started. Once is enough; a pod that has nothing yet is
  // granted what it wishes for.
  void Restore(const corev1::Pod& pod, const PodRuntimeStatus& status);
  // The pod as granted: the same object when that is all it wishes for.
  PodPtr Granted(const PodPtr& pod) const;
  // From now on the pod's wish. On disk before it returns.
  Result<> Grant(const corev1::Pod& pod);

  // What a container that runs has; nullopt: it was started by another kubelet.
  std::optional<corev1::ResourceRequirements> Actual(const std::string& uid,
                                                     const ContainerRecord& record) const;
  // What the pod's spec.resources were when the container was last told of them.
  std::optional<corev1::ResourceRequirements> ActualOfPod(const std::string& uid,
                                                          const ContainerRecord& record) const;
  // What the pod's cgroup has; nullopt: nothing runs in it, or another kubelet made it.
  std::optional<corev1::ResourceRequirements> ActualOfPod(const std::string& uid,
                                                          const PodRuntimeStatus& status) const;
  // `of_pod`: what the container was told of the pod's at that. An empty id: the pod's cgroup.
  Result<> SetActual(const std::string& uid, const std::string& container_id,
                     const corev1::ResourceRequirements& resources,
                     const corev1::ResourceRequirements* of_pod = nullptr);

  ResizeState State(const std::string& uid) const;
  void SetState(const std::string& uid, const ResizeState& state);
  void Forget(const std::string& uid);

 private:
  struct Entry {
    std::map<std::string, corev1::ResourceRequirements>
        granted;  // container; "": the pod, if its spec has any
    // By container id, if changed since its start; "" and kOfPod before an id: of the pod as a whole.
    std::map<std::string, corev1::ResourceRequirements> actual;
    ResizeState state;
  };
  Result<> Save(const std::string& uid, const Entry& entry) const;

  const Paths paths_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
};

// CPU and memory alone, of requests and limits.
corev1::ResourceRequirements Resizable(const corev1::ResourceRequirements& resources);
void SetResizable(const corev1::ResourceRequirements& from, corev1::ResourceRequirements& to);
bool SameResources(const corev1::ResourceRequirements& a, const corev1::ResourceRequirements& b);
// The form of the annotation.
std::string ResourcesText(const corev1::ResourceRequirements& resources);

}  // namespace keelson::kubelet
