// Volumes as wholes: the calls of the service Controller on volumes. Errors as in serving/status.h.
#pragma once

#include "csi/local/model/requests.h"
#include "csi/local/model/wire.h"
#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Thread safe.
class VolumeCalls {
 public:
  explicit VolumeCalls(Context& context) : context_(context) {}

  // Also from a snapshot or another volume. kAlreadyExists: the name has a volume of another kind.
  Result<> Create(const v1::CreateVolumeRequest& request, v1::CreateVolumeResponse& reply);
  // kConflict: it is mounted.
  Result<> Delete(const v1::DeleteVolumeRequest& request);
  Result<> Expand(const v1::ControllerExpandVolumeRequest& request,
                  v1::ControllerExpandVolumeResponse& reply);
  Result<> ValidateCapabilities(const v1::ValidateVolumeCapabilitiesRequest& request,
                                v1::ValidateVolumeCapabilitiesResponse& reply) const;
  Result<> List(const v1::ListVolumesRequest& request, v1::ListVolumesResponse& reply) const;
  Result<> Get(const v1::ControllerGetVolumeRequest& request, v1::ControllerGetVolumeResponse& reply) const;
  Result<> Capacity(const v1::GetCapacityRequest& request, v1::GetCapacityResponse& reply) const;

 private:
  Context& context_;
};

}  // namespace keelson::csi::local
