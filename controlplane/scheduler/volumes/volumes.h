// Claims, volumes, classes and drivers as the API server has shown them, plus assumed claims and volumes: the
// scheduler has decided on a change and writes it. An assumed object hides the shown one until a newer version
// is shown.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

namespace storagev1 = api::storage::v1;

class VolumeCatalog {  // thread safe
 public:
  template <typename T>
  using Ptr = std::shared_ptr<const T>;
  using Claim = corev1::PersistentVolumeClaim;
  using Volume = corev1::PersistentVolume;

  // These set what the API server shows, by "namespace/name" or name; null: it is gone.
  void SetClaim(const std::string& key, Ptr<Claim> claim);
  void SetVolume(const std::string& name, Ptr<Volume> volume);
  void SetClass(const std::string& name, Ptr<storagev1::StorageClass> storage_class);
  void SetNodeDrivers(const std::string& node, Ptr<storagev1::CSINode> drivers);
  void SetDriver(const std::string& name, Ptr<storagev1::CSIDriver> driver);
  void SetCapacity(const std::string& key, Ptr<storagev1::CSIStorageCapacity> capacity);
  void SetAttachment(const std::string& name, const Ptr<storagev1::VolumeAttachment>& attachment);

  // These return the assumed or else the shown object; null: none.
  Ptr<Claim> FindClaim(std::string_view ns, std::string_view name) const;
  Ptr<Volume> FindVolume(const std::string& name) const;
  Ptr<storagev1::StorageClass> FindClass(const std::string& name) const;
  Ptr<storagev1::CSINode> DriversOf(const std::string& node) const;
  Ptr<storagev1::CSIDriver> FindDriver(const std::string& name) const;
  // Names of PersistentVolumes that are attached to the node, or are being attached or detached.
  std::vector<std::string> AttachedTo(const std::string& node) const;
  std::vector<Ptr<Volume>> VolumesOfClass(const std::string& storage_class) const;
  std::vector<Ptr<storagev1::CSIStorageCapacity>> CapacitiesOfClass(const std::string& storage_class) const;

  // Assumes an object. Without effect when it is gone, or a newer version is shown.
  void Assume(const Claim& claim);
  void Assume(const Volume& volume);
  // These drop an assumed object: the shown one counts again.
  void RestoreClaim(const std::string& key);
  void RestoreVolume(const std::string& name);

  // Sets a function that is called after each change, with the catalog's lock held. Before the first object.
  void OnChange(std::function<void()> changed);

 private:
  template <typename T>
  struct AssumeCache {
    std::map<std::string, Ptr<T>, std::less<>> shown, assumed;
    void Set(const std::string& key, Ptr<T> object);
    void Assume(const std::string& key, const T& object);
    Ptr<T> Find(std::string_view key) const;
  };
  void Changed() KEELSON_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::function<void()> changed_ KEELSON_GUARDED_BY(mutex_);
  AssumeCache<Claim> claims_ KEELSON_GUARDED_BY(mutex_);
  AssumeCache<Volume> volumes_ KEELSON_GUARDED_BY(mutex_);
  AssumeCache<storagev1::StorageClass> classes_ KEELSON_GUARDED_BY(mutex_);
  AssumeCache<storagev1::CSINode> node_drivers_ KEELSON_GUARDED_BY(mutex_);
  AssumeCache<storagev1::CSIDriver> drivers_ KEELSON_GUARDED_BY(mutex_);
  AssumeCache<storagev1::CSIStorageCapacity> capacities_ KEELSON_GUARDED_BY(mutex_);
  // Their node and volume never change.
  std::map<std::string, std::string> nodes_of_attachments_ KEELSON_GUARDED_BY(mutex_);  // by name
  std::map<std::string, std::map<std::string, std::string>> attachments_
      KEELSON_GUARDED_BY(mutex_);  // volumes, by node and name
};

}  // namespace keelson::scheduler
