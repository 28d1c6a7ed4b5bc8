// What all calls share. Also what they do with it in common.
#pragma once

#include <stop_token>
#include <string>

#include "csi/local/host/image.h"
#include "csi/local/host/use.h"
#include "csi/local/model/config.h"
#include "csi/local/model/wire.h"
#include "csi/local/store/store.h"
#include "csi/local/volumes/locks.h"
#include "csi/local/volumes/logical_volumes.h"
#include "csi/local/volumes/space.h"
#include "lib/base/clock.h"

namespace keelson::csi::local {

struct Context {
  Context(const Config& c, Store& s, Clock& t, std::stop_token token)
      : config(c), store(s), clock(t), stop(std::move(token)), space(c, s), logical(c, s) {}

  const Config& config;
  Store& store;
  Clock& clock;
  const std::stop_token stop;  // ends copies
  mutable Locks locks;
  Space space;
  LogicalVolumes logical;

  std::string Id(Kind kind, const std::string& name) const { return MakeId(kind, config.node_id, name); }
  // A volume of a claim. kNotFound if there is none.
  Result<VolumeRecord> FindVolume(const std::string& id) const;
  // The record's identity of an inline volume.
  std::string EphemeralId(const std::string& volume_id) const;
  // Also an inline volume.
  Result<VolumeRecord> FindOnNode(const std::string& volume_id) const;
  Result<SnapshotRecord> FindSnapshot(const std::string& id) const;
  // The image, or the device of a logical volume. Not of a directory.
  Result<std::string> Content(const VolumeRecord& record) const;
  // How the kernel uses the volume now.
  Result<Use> UseOfVolume(const std::string& id) const;
  // Unmounts the volume from `path`. Success if it is not there. Returns what is left.
  Result<Use> UnmountVolume(const std::string& id, const std::string& path) const {
    return UnmountFrom([&] { return UseOfVolume(id); }, path);
  }
};

// Removes an image, or a directory, that is not complete.
class TemporaryImage {
 public:
  explicit TemporaryImage(std::string path) : path_(std::move(path)) {}
  ~TemporaryImage();
  TemporaryImage(const TemporaryImage&) = delete;
  TemporaryImage& operator=(const TemporaryImage&) = delete;
  const std::string& path() const { return path_; }
  Result<> MoveTo(const std::string& place);

 private:
  std::string path_;
};

v1::Volume DescribeVolume(const Context& context, const VolumeRecord& record);
v1::Snapshot DescribeSnapshot(const SnapshotRecord& record);
// Whether the volume can be used as promised. `survey`: of the thin pool, where many volumes are asked for.
v1::VolumeCondition ConditionOf(const Context& context, const VolumeRecord& record,
                                const LogicalSurvey* survey = nullptr);

}  // namespace keelson::csi::local
