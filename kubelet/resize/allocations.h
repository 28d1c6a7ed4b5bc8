// Which CPU and memory each container was granted, and which it really has (KEP-1287). A pod's spec says what
// is wished for; a wish may have to wait, or cannot be met at all.
//
// What a container was started with is in an annotation of the runtime's; only a pod that was resized since
// has a file, <pod's directory>/resources.json, which goes with the directory.
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
  Result<> SetActual(const std::string& uid, const std::string& container_id,
                     const corev1::ResourceRequirements& resources);

  ResizeState State(const std::string& uid) const;
  void SetState(const std::string& uid, const ResizeState& state);
  std::vector<std::string> Deferred() const;  // UIDs of pods that wait for room
  void Forget(const std::string& uid);

 private:
  struct Entry {
    std::map<std::string, corev1::ResourceRequirements> granted;  // container
    std::map<std::string, corev1::ResourceRequirements> actual;   // container id, if changed since its start
    ResizeState state;
  };
  Result<> Save(const std::string& uid, const Entry& entry) const;

  const Paths paths_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
};

// CPU and memory alone, of requests and limits.
corev1::ResourceRequirements Resizable(const corev1::ResourceRequirements& resources);
bool SameResources(const corev1::ResourceRequirements& a, const corev1::ResourceRequirements& b);
// The form of the annotation.
std::string ResourcesText(const corev1::ResourceRequirements& resources);

}  // namespace keelson::kubelet
