// A graph of the objects that relate to each node: those that its pods refer to, directly or indirectly.
// Updated per object; a query needs a few lookups, regardless of the cluster's size.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::api::storage::v1 {
class VolumeAttachment;
}
namespace keelson::api::resource::v1 {
class ResourceSlice;
}
namespace keelson::api::certificates::v1beta1 {
class PodCertificateRequest;
}

namespace keelson::apiserver {

class NodeGraph {  // thread safe
 public:
  // True when the object relates to the node. `resource`: the plural, one of pods, secrets, configmaps,
  // serviceaccounts, persistentvolumeclaims, persistentvolumes, resourceclaims, volumeattachments,
  // resourceslices, podcertificaterequests.
  bool Related(std::string_view node, std::string_view resource, std::string_view ns,
               std::string_view name) const;

  void Put(const corev1::Pod& pod);
  void Put(const corev1::PersistentVolume& volume);
  void Put(const api::storage::v1::VolumeAttachment& attachment);
  void Put(const api::resource::v1::ResourceSlice& slice);
  void Put(const api::certificates::v1beta1::PodCertificateRequest& request);
  // `key`: "namespace/name" or "name".
  void Remove(std::string_view resource, std::string_view key);

 private:
  // The edges from one object: either `objects` relate to `node`, or (`node` empty) `objects` lead to `to`.
  struct Source {
    std::string node, to;
    std::vector<std::string> objects;
  };
  void Replace(std::string id, Source source);
  void Forget(const std::string& id) KEELSON_REQUIRES(mutex_);
  bool Reaches(const std::string& object, const std::string& node, int depth) const KEELSON_REQUIRES(mutex_);

  using Counts = std::unordered_map<std::string, int>;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Source> sources_ KEELSON_GUARDED_BY(mutex_);
  // By object, then node: number of sources
  std::unordered_map<std::string, Counts> nodes_ KEELSON_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Counts> links_ KEELSON_GUARDED_BY(mutex_);  // secret -> volume -> claim
};

}  // namespace keelson::apiserver
