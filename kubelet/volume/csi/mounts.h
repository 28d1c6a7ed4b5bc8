// CSI volumes as file systems: staged once a node, published once a pod.
#pragma once

#include <set>
#include <stop_token>
#include <string>

#include "kubelet/volume/csi/drivers.h"
#include "kubelet/volume/csi/operation_backoff.h"
#include "kubelet/volume/csi/volume_objects.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::csi {

// Every step may be the last of a kubelet: what undoes a call is written to disk before the call, and removed after the
// undoing call. This process makes each call once per volume until it has succeeded; a later one makes it again, which
// CSI allows. A failed call is made again after a wait.
class Mounts {  // thread safe; Stage and Unstage of one volume come one at a time
 public:
  Mounts(Mounter& mounter, Drivers& drivers, VolumeObjects& objects, Clock& clock)
      : mounter_(mounter), drivers_(drivers), objects_(objects), backoff_(clock) {}

  // Of a volume behind a claim. Without STAGE_UNSTAGE_VOLUME only the record is made.
  Result<> Stage(const VolumeInput& input, std::stop_token stop);
  // Returns the path. Drivers that want so are called again each time; a failure then is logged only, as the pod has
  // its volume.
  Result<std::string> Publish(const VolumeInput& input, std::stop_token stop);
  // `dir`: of the pod's volume. Keeps its record, by which a stage is found. Succeeds if nothing is published (any more).
  Result<> Unpublish(const std::string& dir, std::stop_token stop);
  // Succeeds if nothing was staged.
  Result<> Unstage(const std::string& staging_path, std::stop_token stop);
  // The pod's directory is gone.
  void ForgetPod(const std::string& uid);

 private:
  // With the SELinux label that the volume has for this pod already, or else may have. kUnavailable: it is staged with
  // another one, for a pod that has not gone yet.
  Result<VolumeInput> WithLabel(const VolumeInput& given) const;
  Result<> StageNow(const VolumeInput& input, const VolumeSource& source, NodeClient& client,
                    const std::string& staging, std::stop_token stop);
  Result<> PublishNow(const VolumeInput& input, const VolumeSource& source, NodeClient& client,
                      const std::string& target, bool again, std::stop_token stop);
  Result<PublishRequest> PlanPublish(const VolumeInput& input, const VolumeSource& source,
                                     const CsiDriver* driver, const NodeCapabilities& capabilities);
  // Of a path that is no mount point (any more); what is in it stays.
  Result<> RemoveMountDir(const std::string& path);
  bool IsDone(const std::string& path) const;
  void SetDone(const std::string& path, bool done);

  Mounter& mounter_;
  Drivers& drivers_;
  VolumeObjects& objects_;
  OperationBackoff backoff_;
  mutable Mutex mutex_;
  // Paths that this process has staged and published to, and (after a "-") has unpublished from.
  std::set<std::string> done_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::csi
