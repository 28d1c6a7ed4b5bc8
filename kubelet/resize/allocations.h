// Which CPU and memory are allocated to each container and to the pod as a whole, and which are in force (KEP-1287,
// KEP-5419). A pod's spec says what is desired; a resize may be deferred, or infeasible.
//
// What was in force when a container was started is in annotations of the runtime; only pods that were resized since
// have a file, <pod's directory>/resources.json, which is removed with the directory.
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

// Why a resize is not allocated, or not in force yet.
struct ResizeState {
  std::string pending;  // Deferred, Infeasible; empty: allocated
  std::string message;
  bool in_progress = false;
  std::string error;  // of the resize in progress
  bool operator==(const ResizeState&) const = default;
};

class Allocations {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  explicit Allocations(Paths paths);

  // Reads what was allocated to the pod before this kubelet started. Call once per pod; a new pod is allocated what
  // its spec says.
  void Restore(const corev1::Pod& pod, const PodRuntimeStatus& status);
  // The pod with its allocated resources: the same object if its spec says the same.
  PodPtr Granted(const PodPtr& pod) const;
  // Allocates what the pod's spec says. On disk before it returns.
  Result<> Grant(const corev1::Pod& pod);

  // What is in force for a running container; nullopt: it was started by another kubelet.
  std::optional<corev1::ResourceRequirements> Actual(const std::string& uid,
                                                     const ContainerRecord& record) const;
  // The pod's spec.resources as of the container's last update.
  std::optional<corev1::ResourceRequirements> ActualOfPod(const std::string& uid,
                                                          const ContainerRecord& record) const;
  // What is in force for the pod's cgroup; nullopt: nothing runs in it, or another kubelet made it.
  std::optional<corev1::ResourceRequirements> ActualOfPod(const std::string& uid,
                                                          const PodRuntimeStatus& status) const;
  // Records what is in force. `of_pod`: the pod's spec.resources at that time. Empty id: the pod's cgroup.
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
  std::map<std::string, Entry> entries_ KEELSON_GUARDED_BY(mutex_);
};

// CPU and memory of requests and limits.
corev1::ResourceRequirements Resizable(const corev1::ResourceRequirements& resources);
void SetResizable(const corev1::ResourceRequirements& from, corev1::ResourceRequirements& to);
bool SameResources(const corev1::ResourceRequirements& a, const corev1::ResourceRequirements& b);
// As in the annotation kResourcesAnnotation.
std::string ResourcesText(const corev1::ResourceRequirements& resources);

}  // namespace keelson::kubelet
