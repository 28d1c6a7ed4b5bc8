// Counts which ConfigMaps and Secrets the node's pods refer to, and tells the stores of the first and last
// reference.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>

#include "kubelet/objects/object_store.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class PodReferences {  // thread safe
 public:
  PodReferences(ObjectStore& config_maps, ObjectStore& secrets) : stores_{&config_maps, &secrets} {}

  // Adds the pod, or replaces what it referred to.
  void SetPod(const corev1::Pod& pod);
  // Does nothing for an unknown UID.
  void RemovePod(const std::string& uid);

 private:
  struct Reference {
    size_t store;  // index in stores_
    std::string ns, name;
    auto operator<=>(const Reference&) const = default;
  };
  void Replace(const std::string& uid, std::set<Reference> now);

  const std::array<ObjectStore*, 2> stores_;
  Mutex mutex_;
  std::map<std::string, std::set<Reference>> by_pod_ KEELSON_GUARDED_BY(mutex_);  // uid
  std::map<Reference, int> pods_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
