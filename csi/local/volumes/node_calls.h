// Volumes on the node: the calls of the service Node. Errors as in serving/status.h.
//
// Staging of a file system: mkfs if the image is blank, a loop device with autoclear, fsck, mount at the staging path,
// growth to the device's size. The mount alone keeps the loop device, so nothing remains of a call that did not end.
// Staging of a directory: a mount of it (bind) at the staging path.
// Staging of a device: a loop device, which stays until it is unstaged.
// An inline volume is made and mounted at its target by Publish, and deleted by Unpublish.
#pragma once

#include "csi/local/model/mount_options.h"
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
  // Where a volume is wanted, and how.
  struct Place {
    const std::string& path;
    const v1::VolumeCapability& capability;
    bool read_only = false;  // beside what the capability's mount options say
  };
  static Result<MountOptions> OptionsOf(const Place& place);
  Result<> MountFileSystem(const VolumeRecord& record, const Place& place);
  Result<> MountDirectory(const VolumeRecord& record, const Place& place);
  Result<> StageDevice(const VolumeRecord& record, const v1::NodeStageVolumeRequest& request);
  // Whether all is as wanted, as far as the two paths alone show it.
  Result<bool> IsQuicklyPublished(const VolumeRecord& record,
                                  const v1::NodePublishVolumeRequest& request) const;
  Result<> PublishFileSystem(const Use& use, const v1::NodePublishVolumeRequest& request);
  Result<> PublishDevice(const Use& use, const v1::NodePublishVolumeRequest& request);
  Result<> PublishEphemeral(const v1::NodePublishVolumeRequest& request);
  Result<> UnpublishEphemeral(const v1::NodeUnpublishVolumeRequest& request);

  Context& context_;
};

// At start: deletes inline volumes whose pods' directories are gone, so that nothing is left to unpublish them.
Result<> RemoveLostEphemeralVolumes(Context& context);

}  // namespace keelson::csi::local
