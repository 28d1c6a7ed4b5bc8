// Which attached volumes the node's pods use or wait for: node.status.volumesInUse. A controller detaches no volume that is
// listed there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kubelet/volume/plugin.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class AttachedVolumes {  // thread safe
 public:
  // The Node object, as the API server has it; null: unknown.
  using NodeFunction = std::function<std::shared_ptr<const corev1::Node>()>;
  // `changed`: Names() differs from before; called without locks, may be empty.
  AttachedVolumes(NodeFunction node, std::function<void()> changed)
      : node_(std::move(node)), changed_(std::move(changed)) {}

  // The pod has the volume from an earlier kubelet.
  void Restore(const std::string& name, const std::string& uid);
  // The pod uses the volume from now on. Sets input.device. kUnavailable, with upstream's message: the node's status does
  // not list it as in use and attached.
  Result<> Use(const std::string& name, VolumeInput& input);
  // The pod waits for the volume no longer: it does not have to be attached any more.
  void Release(const std::string& name, const std::string& uid);
  // The volumes of the pod are unmounted.
  void Forget(const std::string& uid);
  std::vector<std::string> Names() const;  // sorted

  // Pods that wait for a volume to be attached. `in_vain`: the node takes no more volumes.
  void SetWaiting(const std::string& uid, bool in_vain);
  void ClearWaiting(const std::string& uid);
  std::set<std::string> Waiting() const;
  bool WaitsInVain(const std::string& uid) const;

 private:
  Result<> CheckAttached(const std::string& name, VolumeInput& input) const;

  const NodeFunction node_;
  const std::function<void()> changed_;
  mutable Mutex mutex_;
  std::map<std::string, std::set<std::string>> pods_ KEELSON_GUARDED_BY(mutex_);  // by attach name
  std::map<std::string, bool> waiting_ KEELSON_GUARDED_BY(mutex_);                // pods; true: in vain
};

}  // namespace keelson::kubelet
