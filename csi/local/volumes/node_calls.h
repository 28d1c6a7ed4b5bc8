// Volumes on the node: the calls of the service Node. Errors as in serving/status.h.
//
// Staging of a file system: mkfs if the image is blank, a loop device with autoclear, fsck, mount at the staging path,
// growth to the device's size. The mount alone keeps the loop device, so nothing remains of a call that did not end.
// Staging of a directory: a mount of it (bind) at the staging path.
// Staging of a device: a loop device, which stays until it is unstaged.
#pragma once

#include "csi/local/model/requests.h"
#include "csi/local/model/wire.h"
#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Thread safe.
class NodeCalls {
 public:
  explicit NodeCalls(Context& context) : context_(context) {}

  Result<> Stage(const v1::NodeStageVolumeRequest& request);
  Result<> Unstage(const v1::NodeUnstageVolumeRequest& request);
  // kConflict: it is not staged there, or it has its one writer already.
  Result<> Publish(const v1::NodePublishVolumeRequest& request);
  Result<> Unpublish(const v1::NodeUnpublishVolumeRequest& request);
  // kNotFound: the volume is not at this path.
  Result<> Stats(const v1::NodeGetVolumeStatsRequest& request, v1::NodeGetVolumeStatsResponse& reply) const;
  Result<> Expand(const v1::NodeExpandVolumeRequest& request, v1::NodeExpandVolumeResponse& reply);

 private:
  Result<> StageFileSystem(const VolumeRecord& record, const v1::NodeStageVolumeRequest& request);
  Result<> StageDirectory(const VolumeRecord& record, const v1::NodeStageVolumeRequest& request);
  Result<> StageDevice(const VolumeRecord& record, const v1::NodeStageVolumeRequest& request);
  Result<> PublishFileSystem(const Use& use, const v1::NodePublishVolumeRequest& request);
  Result<> PublishDevice(const Use& use, const v1::NodePublishVolumeRequest& request);

  Context& context_;
};

}  // namespace keelson::csi::local
