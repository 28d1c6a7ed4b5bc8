// Which objects belong to which node: what its pods refer to, and what these refer to in turn. Kept up to
// date object by object; a question costs a few look-ups, whatever the cluster's size.
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
  // `resource` is a plural name: pods, secrets, configmaps, serviceaccounts, persistentvolumeclaims,
  // persistentvolumes, resourceclaims, volumeattachments, resourceslices, podcertificaterequests.
  bool Related(std::string_view node, std::string_view resource, std::string_view ns,
               std::string_view name) const;

  void Put(const corev1::Pod& pod);
  void Put(const corev1::PersistentVolume& volume);
  void Put(const api::storage::v1::VolumeAttachment& attachment);
  void Put(const api::resource::v1::ResourceSlice& slice);
  void Put(const api::certificates::v1beta1::PodCertificateRequest& request);
  // `key` is "namespace/name" or "name".
  void Remove(std::string_view resource, std::string_view key);

 private:
  // What one object says: the node that `objects` belong to, or (node empty) that who has `objects` reaches
  // `to` by them.
  struct Source {
    std::string node, to;
    std::vector<std::string> objects;
  };
  void Replace(std::string id, Source source);
  void Forget(const std::string& id) REQUIRES(mutex_);
  bool Reaches(const std::string& object, const std::string& node, int depth) const REQUIRES(mutex_);

  using Counts = std::unordered_map<std::string, int>;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Source> sources_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, Counts> nodes_ GUARDED_BY(mutex_);  // of an object, by how many sources
  std::unordered_map<std::string, Counts> links_ GUARDED_BY(mutex_);  // secret -> volume -> claim
};

}  // namespace keelson::apiserver
