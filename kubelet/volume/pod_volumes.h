// Which volumes this process has mounted for pods, or tried to: for statistics. Only the kernel knows what is mounted.
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
  std::string volume, claim;  // volume: in the pod's spec; claim: empty: none
  std::string plugin;         // kubernetes.io/empty-dir
  std::string path;           // empty: not mounted yet
  bool block = false;         // a device: `path` is its link
  // The volume's directory of the pod: the path, without the mount point of a CSI volume below it.
  std::string Directory() const;
};

class PodVolumes {  // thread safe
 public:
  // Records a mount. Empty `path`: it failed. True: it is not a refresh.
  bool Note(const std::string& plugin, const VolumeInput& input, const std::string& path);
  void Forget(const std::string& uid);
  // `volume`: in the pod's spec.
  bool IsMounted(const std::string& uid, const std::string& volume) const;
  // Whether a pod other than `uid` uses the claim's volume.
  bool OthersUse(const corev1::PersistentVolumeClaim& claim, const std::string& uid) const;
  std::vector<PodVolume> All() const;
  // The volume that is mounted at `path`, or directly below it.
  std::optional<PodVolume> FindByPath(const std::string& uid, const std::string& path) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::map<std::string, PodVolume>> volumes_
      KEELSON_GUARDED_BY(mutex_);  // by uid and name
};

}  // namespace keelson::kubelet
