// Claims, volumes, classes and drivers as the API server has told, plus what the scheduler has decided of
// claims and volumes and whose writing is under way ("assumed"): that stands until something newer is told.
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

  // By "namespace/name" or name; null: it is gone.
  void SetClaim(const std::string& key, Ptr<Claim> claim);
  void SetVolume(const std::string& name, Ptr<Volume> volume);
  void SetClass(const std::string& name, Ptr<storagev1::StorageClass> storage_class);
  void SetNodeDrivers(const std::string& node, Ptr<storagev1::CSINode> drivers);
  void SetDriver(const std::string& name, Ptr<storagev1::CSIDriver> driver);
  void SetCapacity(const std::string& key, Ptr<storagev1::CSIStorageCapacity> capacity);

  // Null when there is none.
  Ptr<Claim> FindClaim(std::string_view ns, std::string_view name) const;
  Ptr<Volume> FindVolume(const std::string& name) const;
  Ptr<storagev1::StorageClass> FindClass(const std::string& name) const;
  Ptr<storagev1::CSINode> DriversOf(const std::string& node) const;
  Ptr<storagev1::CSIDriver> FindDriver(const std::string& name) const;
  std::vector<Ptr<Volume>> VolumesOfClass(const std::string& storage_class) const;
  std::vector<Ptr<storagev1::CSIStorageCapacity>> CapacitiesOfClass(const std::string& storage_class) const;

  void Assume(const Claim& claim);
  void Assume(const Volume& volume);
  void ForgetClaim(const std::string& key);
  void ForgetVolume(const std::string& name);

  // Before the first object. Called after each Set and Assume, with the catalog's lock held.
  void OnChange(std::function<void()> told);

 private:
  template <typename T>
  struct Shelf {
    std::map<std::string, Ptr<T>, std::less<>> told, assumed;
    void Set(const std::string& key, Ptr<T> object);
    void Assume(const std::string& key, const T& object);
    Ptr<T> Find(std::string_view key) const;
  };
  void Changed() REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::function<void()> told_ GUARDED_BY(mutex_);
  Shelf<Claim> claims_ GUARDED_BY(mutex_);
  Shelf<Volume> volumes_ GUARDED_BY(mutex_);
  Shelf<storagev1::StorageClass> classes_ GUARDED_BY(mutex_);
  Shelf<storagev1::CSINode> node_drivers_ GUARDED_BY(mutex_);
  Shelf<storagev1::CSIDriver> drivers_ GUARDED_BY(mutex_);
  Shelf<storagev1::CSIStorageCapacity> capacities_ GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
