// CSI volumes of mode Block: staged once a node, published once a pod as a device file that the driver makes.
#pragma once

#include <set>
#include <stop_token>
#include <string>

#include "kubelet/volume/csi/drivers.h"
#include "kubelet/volume/csi/operation_backoff.h"
#include "kubelet/volume/csi/volume_objects.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::csi {

// As Mounts, for devices: records before calls, and each call until it has succeeded. The pod's link to its device
// (block_devices.h) is the record of its use; Publish makes it first.
class Devices {  // thread safe
 public:
  Devices(Mounter& mounter, Drivers& drivers, VolumeObjects& objects, Clock& clock)
      : mounter_(mounter), drivers_(drivers), objects_(objects), backoff_(clock) {}

  // Returns the path of the device.
  Result<std::string> Publish(const VolumeInput& input, std::stop_token stop);
  // The pod's device is not bound any more, and its link is still there.
  Result<> Unpublish(const Paths& paths, const PublishedVolume& volume, std::stop_token stop);
  // After that. Unstages if no other pod has a link.
  Result<> Release(const Paths& paths, const PublishedVolume& volume, std::stop_token stop);
  // The pod's directory is gone.
  void ForgetPod(const std::string& uid);

 private:
  class Turn;  // of one volume, by its data directory

  Result<> PublishNow(const VolumeInput& input, const VolumeSource& source, NodeClient& client,
                      const DevicePaths& where, std::stop_token stop);
  Result<> UnstageIfUnused(const Paths& paths, const PublishedVolume& volume, const VolumeData& data,
                           NodeClient& client, std::stop_token stop);

  Mounter& mounter_;
  Drivers& drivers_;
  VolumeObjects& objects_;
  OperationBackoff backoff_;
  Mutex mutex_;
  CondVar free_;
  std::set<std::string> at_work_ KEELSON_GUARDED_BY(mutex_);
  // Staging and publish paths, and (after a "-") those that this process has unpublished from.
  std::set<std::string> done_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::csi
