// Which volumes pods have, or are to have, as far as they have been seen to since this process began: for
// statistics. What is mounted is told by the kernel alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kubelet/volume/plugin.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct PodVolume {
  std::string uid, ns;        // of the pod
  std::string volume, claim;  // as the pod calls it; the claim, of volumes that have one
  std::string plugin;         // kubernetes.io/empty-dir
  std::string path;           // empty: it is not there yet
};

class PodVolumes {  // thread safe
 public:
  // `path` is empty after a failure. True when this is no mere refresh.
  bool Note(const std::string& plugin, const VolumeInput& input, const std::string& path);
  void Forget(const std::string& uid);
  // Whether a pod other than `uid` has what the claim is bound to.
  bool OthersUse(const corev1::PersistentVolumeClaim& claim, const std::string& uid) const;
  std::vector<PodVolume> All() const;
  std::optional<PodVolume> FindByPath(const std::string& uid, const std::string& path) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::map<std::string, PodVolume>> volumes_ GUARDED_BY(mutex_);  // by uid and name
};

}  // namespace keelson::kubelet
