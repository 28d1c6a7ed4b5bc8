// A CSI driver behind its socket, as the controllers call it (CSI specification, version 1).
//
// Errors have the text that Go's gRPC prints ("rpc error: code = ... desc = ..."), since users look for it in events.
// Their code tells the gRPC code:
//
//   INVALID_ARGUMENT kBadRequest, NOT_FOUND kNotFound, ALREADY_EXISTS kAlreadyExists, OUT_OF_RANGE kGone,
//   FAILED_PRECONDITION kInvalid, RESOURCE_EXHAUSTED kTooManyRequests, ABORTED kConflict, UNIMPLEMENTED kUnimplemented,
//   DEADLINE_EXCEEDED kTimeout, UNAVAILABLE and CANCELLED kUnavailable; kCancelled: the stop token ended the call
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "csi/controller/model/topology.h"
#include "csi/controller/model/wire.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::csi::controller {

using Capability = v1::ControllerServiceCapability::RPC;

struct DriverInfo {
  std::string name, vendor_version;
  bool controller_service = false;  // CONTROLLER_SERVICE
  bool topology = false;            // VOLUME_ACCESSIBILITY_CONSTRAINTS
  std::set<Capability::Type> controller;
  bool node_expand = false;  // the node's EXPAND_VOLUME, where the socket serves the Node service too
  Segments node_topology;    // of the driver's node; only with DriverOptions::node

  bool Can(Capability::Type what) const { return controller.count(what) > 0; }
};

struct DriverOptions {
  std::string address;                                          // a path, or unix:///PATH
  std::chrono::milliseconds timeout{std::chrono::seconds(15)};  // of each call
  bool node = false;                                            // also ask NodeGetInfo
};

// Whether nothing of the failed call is under way: no other node or volume may be tried before this is known.
bool IsFinal(const Error& error);

class Driver {  // thread safe
 public:
  explicit Driver(DriverOptions options);
  ~Driver();

  // Waits until the driver is there and ready, and asks what it is. kCancelled: stopped. kInvalid: it has no name.
  Result<> Connect(std::stop_token stop);
  // What it is, after Connect(). A driver that was away is asked again, since it may be a new version. kInvalid: it has
  // another name now.
  Result<std::shared_ptr<const DriverInfo>> Info(std::stop_token stop);
  const std::string& name() const { return name_; }  // after Connect()
  Result<> Probe(std::stop_token stop);              // kUnavailable: not ready

  Result<v1::CreateVolumeResponse> CreateVolume(const v1::CreateVolumeRequest& request, std::stop_token stop);
  Result<> DeleteVolume(const v1::DeleteVolumeRequest& request, std::stop_token stop);
  Result<v1::ControllerPublishVolumeResponse> Publish(const v1::ControllerPublishVolumeRequest& request,
                                                      std::stop_token stop);
  Result<> Unpublish(const v1::ControllerUnpublishVolumeRequest& request, std::stop_token stop);
  Result<v1::ControllerExpandVolumeResponse> Expand(const v1::ControllerExpandVolumeRequest& request,
                                                    std::stop_token stop);
  Result<> Modify(const v1::ControllerModifyVolumeRequest& request, std::stop_token stop);
  Result<v1::CreateSnapshotResponse> CreateSnapshot(const v1::CreateSnapshotRequest& request,
                                                    std::stop_token stop);
  Result<> DeleteSnapshot(const v1::DeleteSnapshotRequest& request, std::stop_token stop);
  Result<v1::ListSnapshotsResponse> ListSnapshots(const v1::ListSnapshotsRequest& request,
                                                  std::stop_token stop);
  Result<v1::ListVolumesResponse> ListVolumes(const v1::ListVolumesRequest& request, std::stop_token stop);
  Result<v1::ControllerGetVolumeResponse> GetVolume(const v1::ControllerGetVolumeRequest& request,
                                                    std::stop_token stop);
  Result<v1::GetCapacityResponse> GetCapacity(const v1::GetCapacityRequest& request, std::stop_token stop);

 private:
  template <typename Method, typename Stub, typename Request, typename Reply>
  Result<> Invoke(Stub& stub, Method method, const char* name, const Request& request, Reply& reply,
                  const std::stop_token& stop);
  Result<DriverInfo> Ask(std::stop_token stop);

  struct Stubs;
  const DriverOptions options_;
  const std::unique_ptr<Stubs> stubs_;
  std::string name_;  // constant after Connect()
  Mutex mutex_;
  std::shared_ptr<const DriverInfo> info_ KEELSON_GUARDED_BY(mutex_);  // null: to be asked
};

}  // namespace keelson::csi::controller
