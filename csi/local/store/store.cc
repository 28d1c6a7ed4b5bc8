#include "csi/local/store/store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "csi/local/host/directory.h"
#include "csi/local/host/image.h"
#include "csi/local/host/use.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

constexpr mode_t kDirectoryMode = 0700, kRecordMode = 0600;

const char* Folder(Kind kind) {
  switch (kind) {
    case Kind::kVolume:
      return "volumes";
    case Kind::kSnapshot:
      return "snapshots";
    case Kind::kGroup:
      return "groups";
  }
  return "";
}

// "ID.json" -> ID; "" for other names.
std::string IdOf(Kind kind, const std::string& name, const std::string& ending) {
  if (name.size() <= ending.size()) return "";
  const size_t size = name.size() - ending.size();
  if (name.compare(size, ending.size(), ending) != 0 || !IsId(kind, name.substr(0, size))) return "";
  return name.substr(0, size);
}

template <typename Record>
Result<> LoadAll(const std::string& directory, Kind kind, std::map<std::string, Record>& out) {
  KEELSON_ASSIGN_OR_RETURN(auto names, ListDir(directory));
  for (const std::string& name : names) {
    const std::string id = IdOf(kind, name, ".json");
    if (id.empty()) continue;
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(directory + "/" + name));
    Record record;
    KEELSON_RETURN_IF_ERROR(FromJson(text, id, record));
    out.emplace(id, std::move(record));
  }
  return {};
}

template <typename Record>
std::optional<Record> Find(const std::map<std::string, Record>& records, const std::string& id) {
  auto it = records.find(id);
  return it == records.end() ? std::nullopt : std::optional<Record>(it->second);
}

template <typename Record>
std::vector<Record> Values(const std::map<std::string, Record>& records) {
  std::vector<Record> out;
  for (const auto& [id, record] : records) out.push_back(record);
  return out;
}

Result<> Discard(const std::string& content) {
  if (content.ends_with(".dir")) return RemoveDirectoryForGood(content);
  KEELSON_ASSIGN_OR_RETURN(Use use, FindUse(content));
  KEELSON_RETURN_IF_ERROR(DetachIdle(use));
  return RemoveForGood(content);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(const std::string& directory) {
  for (const char* name : {"volumes", "snapshots", "groups", "frozen", "tmp"}) {
    KEELSON_RETURN_IF_ERROR(MakeDirs(directory + "/" + name, kDirectoryMode));
  }
  KEELSON_ASSIGN_OR_RETURN(UniqueFd lock, OpenFile(directory + "/lock", O_RDWR | O_CREAT, 0600));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error(Code::kConflict, directory + " is in use by another driver");
    return ErrnoError("lock " + directory);
  }
  std::unique_ptr<Store> store(new Store(directory, std::move(lock)));
  KEELSON_RETURN_IF_ERROR(store->Load());
  KEELSON_RETURN_IF_ERROR(store->RemoveRemains());
  return store;
}

Result<> Store::Load() {
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(LoadAll(directory_ + "/volumes", Kind::kVolume, volumes_));
  KEELSON_RETURN_IF_ERROR(LoadAll(directory_ + "/snapshots", Kind::kSnapshot, snapshots_));
  return LoadAll(directory_ + "/groups", Kind::kGroup, groups_);
}

Result<> Store::RemoveRemains() {
  KEELSON_ASSIGN_OR_RETURN(auto names, ListDir(directory_ + "/tmp"));
  for (const std::string& name : names) KEELSON_RETURN_IF_ERROR(Discard(directory_ + "/tmp/" + name));
  KEELSON_RETURN_IF_ERROR(RemoveHalfGroups());
  for (Kind kind : {Kind::kVolume, Kind::kSnapshot, Kind::kGroup}) {
    KEELSON_RETURN_IF_ERROR(RemoveRemainsOf(kind));
  }
  return {};
}

Result<> Store::RemoveRemainsOf(Kind kind) {
  const std::string directory = directory_ + "/" + Folder(kind);
  KEELSON_ASSIGN_OR_RETURN(auto names, ListDir(directory));
  for (const std::string& name : names) {
    if (!IdOf(kind, name, ".json").empty()) continue;
    std::string id = IdOf(kind, name, ".img");
    if (id.empty()) id = IdOf(kind, name, ".dir");
    if (!id.empty()) {
      if (PathExists(RecordPath(kind, id))) continue;
      log::Warn("Remove what a call that did not end has left", {{"id", id}});
    } else if (name.find(".json.tmp") == std::string::npos) {
      log::Warn("A file in the data directory is not the driver's", {{"file", directory + "/" + name}});
      continue;
    }
    KEELSON_RETURN_IF_ERROR(Discard(directory + "/" + name));
  }
  return {};
}

// A group's record comes last and goes first.
Result<> Store::RemoveHalfGroups() {
  for (const SnapshotRecord& snapshot : Snapshots()) {
    // LVM removes its own (LogicalVolumes::Recover).
    if (snapshot.logical || snapshot.group.empty() || Group(snapshot.group)) continue;
    log::Warn("Remove a snapshot of a group that is not complete",
              {{"id", snapshot.id}, {"group", snapshot.group}});
    KEELSON_RETURN_IF_ERROR(Remove(Kind::kSnapshot, snapshot.id));
  }
  return {};
}

std::optional<VolumeRecord> Store::Volume(const std::string& id) const {
  MutexLock lock(mutex_);
  return Find(volumes_, id);
}

std::optional<SnapshotRecord> Store::Snapshot(const std::string& id) const {
  MutexLock lock(mutex_);
  return Find(snapshots_, id);
}

std::optional<GroupRecord> Store::Group(const std::string& id) const {
  MutexLock lock(mutex_);
  return Find(groups_, id);
}

std::vector<VolumeRecord> Store::Volumes() const {
  MutexLock lock(mutex_);
  return Values(volumes_);
}

std::vector<SnapshotRecord> Store::Snapshots() const {
  MutexLock lock(mutex_);
  return Values(snapshots_);
}

Result<> Store::Put(const VolumeRecord& record) {
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(RecordPath(Kind::kVolume, record.id), ToJson(record), kRecordMode));
  MutexLock lock(mutex_);
  volumes_[record.id] = record;
  return {};
}

Result<> Store::Put(const SnapshotRecord& record) {
  KEELSON_RETURN_IF_ERROR(
      WriteFileAtomic(RecordPath(Kind::kSnapshot, record.id), ToJson(record), kRecordMode));
  MutexLock lock(mutex_);
  snapshots_[record.id] = record;
  return {};
}

Result<> Store::Put(const GroupRecord& record) {
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(RecordPath(Kind::kGroup, record.id), ToJson(record), kRecordMode));
  MutexLock lock(mutex_);
  groups_[record.id] = record;
  return {};
}

Result<> Store::Remove(Kind kind, const std::string& id) {
  KEELSON_RETURN_IF_ERROR(RemoveForGood(RecordPath(kind, id)));
  if (kind != Kind::kGroup) {
    KEELSON_RETURN_IF_ERROR(RemoveForGood(Image(kind, id)));
    KEELSON_RETURN_IF_ERROR(RemoveDirectoryForGood(Directory(kind, id)));
  }
  MutexLock lock(mutex_);
  volumes_.erase(id);
  snapshots_.erase(id);
  groups_.erase(id);
  return {};
}

std::string Store::RecordPath(Kind kind, const std::string& id) const {
  return directory_ + "/" + Folder(kind) + "/" + id + ".json";
}

std::string Store::Image(Kind kind, const std::string& id) const {
  return directory_ + "/" + Folder(kind) + "/" + id + ".img";
}

std::string Store::Directory(Kind kind, const std::string& id) const {
  return directory_ + "/" + Folder(kind) + "/" + id + ".dir";
}

std::string Store::TemporaryDirectory(const std::string& id) const {
  return directory_ + "/tmp/" + id + ".dir";
}

std::string Store::Temporary(const std::string& id) const { return directory_ + "/tmp/" + id + ".img"; }

std::string Store::FrozenMark(const std::string& id) const { return directory_ + "/frozen/" + id; }

Result<std::vector<std::string>> Store::FrozenMarks() const { return ListDir(directory_ + "/frozen"); }

}  // namespace keelson::csi::local
