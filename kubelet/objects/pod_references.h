// Which ConfigMaps and Secrets the node's pods refer to: readers hear what is wanted anew, and what no more.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>

#include "kubelet/objects/reader.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class PodReferences {  // thread safe
 public:
  PodReferences(ObjectReader& config_maps, ObjectReader& secrets) : readers_{&config_maps, &secrets} {}

  void Set(const corev1::Pod& pod);     // as the API has it now
  void Remove(const std::string& uid);  // the API has it no more

 private:
  struct Reference {
    size_t reader;
    std::string ns, name;
    auto operator<=>(const Reference&) const = default;
  };
  void Replace(const std::string& uid, std::set<Reference> now);

  const std::array<ObjectReader*, 2> readers_;
  Mutex mutex_;
  std::map<std::string, std::set<Reference>> by_pod_ GUARDED_BY(mutex_);  // uid
  std::map<Reference, int> pods_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
