#include "csi/local/volumes/logical_volumes.h"

#include <fcntl.h>

#include <algorithm>

#include "csi/local/host/filesystem.h"
#include "csi/local/model/requests.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

constexpr char kTagPrefix[] = "keelson.csi.local/", kIncomplete[] = "keelson.csi.local/incomplete",
               kFormatting[] = "keelson.csi.local/formatting";
// Full metadata stops a pool for writes; room for the volumes that are there.
constexpr double kMostMetadata = 90;

std::unique_ptr<Lvm> LvmOf(const Config& config) {
  if (config.lvm_volume_group.empty()) return nullptr;
  return std::make_unique<Lvm>(LvmOptions{config.lvm_volume_group, config.lvm_thin_pool,
                                          kTagPrefix + config.driver_name + "/" + config.node_id});
}

Error NotEnough(int64_t wanted, int64_t available) {
  return Error(Code::kTooManyRequests, "not enough space in the thin pool: " + std::to_string(wanted) +
                                           " bytes are wanted, " + std::to_string(available) +
                                           " are available");
}

Result<> WriteOut(const std::string& device) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDWR));
  if (::fsync(fd.get()) != 0) return ErrnoError("fsync " + device);
  return {};
}

bool HasRecord(const Store& store, const std::string& id) { return store.Volume(id) || store.Snapshot(id); }

}  // namespace

const LogicalVolume* LogicalSurvey::Find(const std::string& id) const {
  auto it = std::find_if(volumes.begin(), volumes.end(), [&](const auto& one) { return one.name == id; });
  return it == volumes.end() ? nullptr : &*it;
}

LogicalVolumes::LogicalVolumes(const Config& config, Store& store)
    : config_(config), store_(store), lvm_(LvmOf(config)) {}

Result<> LogicalVolumes::CheckConfigured() const {
  if (lvm_) return {};
  return Error(Code::kConflict, "type lvm is not set up on node " + config_.node_id +
                                    ": --lvm-volume-group and --lvm-thin-pool");
}

// The store does so with snapshots that are files.
Result<> LogicalVolumes::RemoveHalfGroups() {
  for (const SnapshotRecord& snapshot : store_.Snapshots()) {
    if (!snapshot.logical || snapshot.group.empty() || store_.Group(snapshot.group)) continue;
    log::Warn("Remove a snapshot of a group that is not complete",
              {{"id", snapshot.id}, {"group", snapshot.group}});
    KEELSON_RETURN_IF_ERROR(Remove(Kind::kSnapshot, snapshot.id));
  }
  return {};
}

Result<> LogicalVolumes::Recover() {
  if (!lvm_) return {};
  KEELSON_RETURN_IF_ERROR(lvm_->Pool());
  KEELSON_RETURN_IF_ERROR(RemoveHalfGroups());
  KEELSON_ASSIGN_OR_RETURN(auto volumes, lvm_->Volumes());
  for (const LogicalVolume& volume : volumes) {
    if (HasRecord(store_, volume.name)) {
      KEELSON_RETURN_IF_ERROR(lvm_->SetMark(volume, kIncomplete, false));
    } else if (volume.HasTag(kIncomplete)) {
      log::Warn("Remove what a call that did not end has left", {{"id", volume.name}});
      KEELSON_RETURN_IF_ERROR(lvm_->Remove(volume));
    } else {
      log::Warn("A logical volume has no record; it stays", {{"id", volume.name}});
    }
  }
  return {};
}

Result<int64_t> LogicalVolumes::AvailableLocked() const {
  KEELSON_ASSIGN_OR_RETURN(const ThinPool pool, lvm_->Pool());
  if (pool.metadata >= kMostMetadata) return 0;
  int64_t promised = 0;
  for (const VolumeRecord& record : store_.Volumes()) {
    if (record.logical) promised += record.capacity;
  }
  return ThinCapacity(pool.free, config_.overprovision_ratio, promised, pool.size - pool.free);
}

Result<int64_t> LogicalVolumes::Available() const {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  MutexLock lock(mutex_);
  return AvailableLocked();
}

Result<ThinPool> LogicalVolumes::Pool() const {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  return lvm_->Pool();
}

Result<> LogicalVolumes::Reserve(int64_t bytes) const {
  KEELSON_ASSIGN_OR_RETURN(const int64_t available, AvailableLocked());
  return bytes <= available ? Result<>() : NotEnough(bytes, available);
}

// A copy takes no space of its own at first.
Result<> LogicalVolumes::CheckMetadata() const {
  KEELSON_ASSIGN_OR_RETURN(const ThinPool pool, lvm_->Pool());
  if (pool.metadata < kMostMetadata) return {};
  return Error(Code::kTooManyRequests, "the thin pool's metadata is full");
}

// A volume of this name without a record.
Result<> LogicalVolumes::RemoveRemains(const std::string& id) const {
  auto left = lvm_->Volume(id);
  if (!left && left.error().Is(Code::kNotFound)) return {};
  if (!left) return left.error();
  if (left->HasTag(kIncomplete)) return lvm_->Remove(*left);
  return Error(Code::kConflict, "logical volume " + id + " exists without a record");
}

// The record is what makes the volume exist.
template <typename Record>
Result<> LogicalVolumes::Complete(const Record& record) {
  KEELSON_RETURN_IF_ERROR(store_.Put(record));
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume made, lvm_->Volume(record.id));
  return lvm_->SetMark(made, kIncomplete, false);
}

Result<> LogicalVolumes::Create(const VolumeRecord& record, const std::string& source) {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Reserve(record.capacity));
  KEELSON_RETURN_IF_ERROR(RemoveRemains(record.id));
  if (source.empty()) {
    KEELSON_RETURN_IF_ERROR(lvm_->Create(record.id, record.capacity, {kIncomplete}));
    return Complete(record);
  }
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume from, lvm_->Volume(source));
  std::vector<std::string> marks = {kIncomplete};
  if (from.HasTag(kFormatting)) marks.emplace_back(kFormatting);
  KEELSON_RETURN_IF_ERROR(lvm_->Snapshot(from, record.id, marks));
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume copy, lvm_->Volume(record.id));
  KEELSON_RETURN_IF_ERROR(lvm_->Extend(copy, record.capacity));
  return Complete(record);
}

Result<> LogicalVolumes::Snapshot(const SnapshotRecord& record) {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(CheckMetadata());
  KEELSON_RETURN_IF_ERROR(RemoveRemains(record.id));
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume from, lvm_->Volume(record.source_volume));
  std::vector<std::string> marks = {kIncomplete};
  if (from.HasTag(kFormatting)) marks.emplace_back(kFormatting);
  KEELSON_RETURN_IF_ERROR(lvm_->Snapshot(from, record.id, marks));
  return Complete(record);
}

Result<> LogicalVolumes::Remove(Kind kind, const std::string& id) {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  auto volume = lvm_->Volume(id);
  const bool absent = !volume && volume.error().Is(Code::kNotFound);
  if (!volume && !absent) return volume.error();
  if (!absent) {
    if (!HasRecord(store_, id) && !volume->HasTag(kIncomplete)) return {};  // a record that was lost
    KEELSON_RETURN_IF_ERROR(lvm_->SetMark(*volume, kIncomplete, true));
  }
  KEELSON_RETURN_IF_ERROR(store_.Remove(kind, id));
  return absent ? Result<>() : lvm_->Remove(*volume);
}

Result<> LogicalVolumes::Grow(const VolumeRecord& record) {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  MutexLock lock(mutex_);
  const auto before = store_.Volume(record.id);
  KEELSON_RETURN_IF_ERROR(Reserve(record.capacity - (before ? before->capacity : 0)));
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume volume, lvm_->Volume(record.id));
  KEELSON_RETURN_IF_ERROR(lvm_->Extend(volume, record.capacity));
  return store_.Put(record);
}

LogicalSurvey LogicalVolumes::Survey() const {
  LogicalSurvey out;
  if (!lvm_) return out;
  if (auto volumes = lvm_->Volumes()) out.volumes = *std::move(volumes);
  if (const auto pool = lvm_->Pool()) out.pool = *pool;
  return out;
}

Result<LogicalVolume> LogicalVolumes::Find(const std::string& id) const {
  KEELSON_RETURN_IF_ERROR(CheckConfigured());
  return lvm_->Volume(id);
}

Result<std::string> LogicalVolumes::Device(const std::string& id) const {
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume volume, Find(id));
  KEELSON_RETURN_IF_ERROR(lvm_->Activate(volume));
  return volume.device;
}

Result<bool> LogicalVolumes::IsHalfFormatted(const std::string& id) const {
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume volume, Find(id));
  return volume.HasTag(kFormatting);
}

Result<> LogicalVolumes::Format(const std::string& id, const std::string& type) const {
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume volume, Find(id));
  // LVM shows 0 only for a volume without a single block.
  if (!volume.HasTag(kFormatting) && (!volume.taken || *volume.taken > 0)) {
    return Error(Code::kConflict, "volume " + id + " holds data that is no file system: it is not formatted");
  }
  KEELSON_RETURN_IF_ERROR(lvm_->SetMark(volume, kFormatting, true));
  KEELSON_RETURN_IF_ERROR(local::Format(volume.device, type, true));
  KEELSON_RETURN_IF_ERROR(WriteOut(volume.device));
  KEELSON_ASSIGN_OR_RETURN(const LogicalVolume formatted, Find(id));
  KEELSON_RETURN_IF_ERROR(lvm_->SetMark(formatted, kFormatting, false));
  log::Info("Volume formatted", {{"id", id}, {"type", type}});
  return {};
}

}  // namespace keelson::csi::local
