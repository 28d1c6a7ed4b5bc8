// A volume that a pod has, or is to have.
#pragma once

#include <string>

namespace keelson::kubelet {

struct PodVolume {
  std::string uid, ns;        // of the pod
  std::string volume, claim;  // as the pod calls it; the claim, of volumes that have one
  std::string plugin;         // kubernetes.io/empty-dir
  std::string path;           // empty: it is not there yet
};

}  // namespace keelson::kubelet
