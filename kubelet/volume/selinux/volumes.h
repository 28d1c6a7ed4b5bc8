// Which volumes are mounted with an SELinux label (mount -o context), so that the runtime need not relabel their files one
// by one: KEP-1710. The label is that of all containers of the pod that use the volume.
//
// Gates: SELinuxMountReadWriteOncePod and SELinuxChangePolicy are locked to on. SELinuxMount, off by default, is for volumes
// of all access modes; without it volumes whose only mode is ReadWriteOncePod are concerned, and what would be an error
// with it is counted as a warning.
#pragma once

#include <map>
#include <set>
#include <string>

#include "kubelet/volume/selinux/labels.h"
#include "kubelet/volume/selinux/metrics.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct SeLinuxSettings {
  SeLinuxLabels labels;
  bool all_modes = false;  // the gate SELinuxMount
};

// A volume of a pod.
struct SeLinuxUse {
  const corev1::Pod& pod;
  const std::string& volume;                             // its name in the pod's spec
  const corev1::PersistentVolume* persistent = nullptr;  // null: it is in the pod's spec
  std::string plugin;                                    // kubernetes.io/csi/DRIVER, or a plugin's name
};

class SeLinuxVolumes {  // thread safe
 public:
  explicit SeLinuxVolumes(SeLinuxSettings settings)
      : labels_(std::move(settings.labels)), all_modes_(settings.all_modes) {}

  bool enabled() const { return labels_.enabled(); }
  // The label to mount the pod's volume with; empty: none, the runtime relabels the files. `takes`: the plugin can mount
  // this volume with a label. kInvalid: the containers' labels differ, or cannot be; kConflict: another pod has the volume
  // with another label.
  Result<std::string> Admit(const SeLinuxUse& use, bool takes);
  // The pod has no volumes any more.
  void Forget(const std::string& uid);

 private:
  struct Volume {
    std::string label;           // that its pods need, whether it is mounted with that or not
    std::set<std::string> pods;  // uids
  };

  const SeLinuxLabels labels_;
  const bool all_modes_;
  const SeLinuxMetrics metrics_ = MakeSeLinuxMetrics();
  Mutex mutex_;
  std::map<std::string, Volume> volumes_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
