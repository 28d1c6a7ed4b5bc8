// Snapshots, and groups of them taken at one instant. A snapshot is a file of its own: it outlives its volume, and volumes
// made from it outlive the snapshot.
#pragma once

#include "csi/local/model/requests.h"
#include "csi/local/model/wire.h"
#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Record and content; success if both are absent. The caller holds the snapshot's lock.
Result<> RemoveSnapshot(Context& context, const std::string& id);

// Thread safe.
class SnapshotCalls {
 public:
  explicit SnapshotCalls(Context& context) : context_(context) {}

  Result<> Create(const v1::CreateSnapshotRequest& request, v1::CreateSnapshotResponse& reply);
  // kInvalid: it belongs to a group.
  Result<> Delete(const v1::DeleteSnapshotRequest& request);
  Result<> List(const v1::ListSnapshotsRequest& request, v1::ListSnapshotsResponse& reply) const;
  Result<> Get(const v1::GetSnapshotRequest& request, v1::GetSnapshotResponse& reply) const;

  Result<> CreateGroup(const v1::CreateVolumeGroupSnapshotRequest& request,
                       v1::CreateVolumeGroupSnapshotResponse& reply);
  Result<> DeleteGroup(const v1::DeleteVolumeGroupSnapshotRequest& request);
  Result<> GetGroup(const v1::GetVolumeGroupSnapshotRequest& request,
                    v1::GetVolumeGroupSnapshotResponse& reply) const;

 private:
  Context& context_;
};

}  // namespace keelson::csi::local
