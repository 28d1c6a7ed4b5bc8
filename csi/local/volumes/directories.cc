#include "csi/local/volumes/directories.h"

#include <algorithm>

#include "csi/local/host/directory.h"
#include "csi/local/host/project_quota.h"

namespace keelson::csi::local {

namespace {

// Above what others choose by hand, and above the kubelet's (1048577 and up).
constexpr int64_t kFirstProject = 0x40000000, kProjects = 0x40000000;
constexpr int kMostTries = 100;

Error NoQuotas(const Context& context) {
  return Error(Code::kConflict,
               "the file system of " + context.store.directory() +
                   " has no project quotas (mount option prjquota): the capacity of type directory "
                   "cannot be held (--directory-quotas=false makes such volumes all the same)");
}

bool IsTakenProject(const Context& context, int64_t project) {
  const auto volumes = context.store.Volumes();
  return std::any_of(volumes.begin(), volumes.end(),
                     [&](const VolumeRecord& volume) { return volume.project == project; });
}

struct ChosenProject {
  int64_t project = 0;
  Locks::Held lock;  // against a call that chooses the same one
};

// One that no volume has, and under which the file system has counted nothing.
Result<ChosenProject> ChooseProject(const Context& context, const std::string& id) {
  const int64_t start = std::stoll(id.substr(id.find('-') + 1, 8), nullptr, 16);
  for (int64_t i = 0; i < kMostTries; ++i) {
    const int64_t project = kFirstProject + (start + i) % kProjects;
    auto lock = context.locks.Exclusive("project-" + std::to_string(project));
    if (!lock || IsTakenProject(context, project)) continue;
    KEELSON_ASSIGN_OR_RETURN(ProjectUse use, ProjectUseOf(context.store.directory(), project));
    if (use.used == 0) return ChosenProject{project, std::move(*lock)};
  }
  return Error(Code::kConflict, "all projects that this volume could have are taken");
}

}  // namespace

Result<> CreateDirectoryVolume(const Context& context, VolumeRecord& record, const std::string& source) {
  KEELSON_ASSIGN_OR_RETURN(bool quotas, HasProjectQuotas(context.store.directory()));
  if (!quotas && context.config.directory_quotas) return NoQuotas(context);
  TemporaryImage directory(context.store.TemporaryDirectory(record.id));
  KEELSON_RETURN_IF_ERROR(RemoveDirectoryForGood(directory.path()));
  KEELSON_RETURN_IF_ERROR(MakeDirectory(directory.path()));
  std::optional<ChosenProject> chosen;
  if (quotas) {
    KEELSON_ASSIGN_OR_RETURN(chosen, ChooseProject(context, record.id));
    record.project = chosen->project;
    KEELSON_RETURN_IF_ERROR(SetProjectLimit(context.store.directory(), record.project, record.capacity));
    KEELSON_RETURN_IF_ERROR(SetProject(directory.path(), record.project));
  }
  if (!source.empty()) KEELSON_RETURN_IF_ERROR(CopyDirectory(source, directory.path(), context.stop));
  KEELSON_RETURN_IF_ERROR(directory.MoveTo(context.store.Directory(Kind::kVolume, record.id)));
  return context.store.Put(record);
}

Result<std::string> IdleDirectory(const Context& context, const VolumeRecord& volume) {
  KEELSON_ASSIGN_OR_RETURN(Use use, context.UseOfVolume(volume.id));
  if (use.mounts.empty()) return context.store.Directory(Kind::kVolume, volume.id);
  return Error(Code::kConflict, "volume " + volume.id + " is a directory in use at " + use.mounts.back().at +
                                    ": a copy would not be of one instant");
}

Result<> SnapshotDirectory(const Context& context, const VolumeRecord& volume, const std::string& snapshot) {
  KEELSON_ASSIGN_OR_RETURN(const std::string from, IdleDirectory(context, volume));
  TemporaryImage directory(context.store.TemporaryDirectory(snapshot));
  KEELSON_RETURN_IF_ERROR(RemoveDirectoryForGood(directory.path()));
  KEELSON_RETURN_IF_ERROR(MakeDirectory(directory.path()));
  KEELSON_RETURN_IF_ERROR(CopyDirectory(from, directory.path(), context.stop));
  return directory.MoveTo(context.store.Directory(Kind::kSnapshot, snapshot));
}

Result<> HoldCapacity(const Context& context, const VolumeRecord& record) {
  if (record.project == 0) return {};
  KEELSON_ASSIGN_OR_RETURN(bool quotas, HasProjectQuotas(context.store.directory()));
  if (!quotas) return NoQuotas(context);
  return SetProjectLimit(context.store.directory(), record.project, record.capacity);
}

Result<> ReleaseCapacity(const Context& context, const VolumeRecord& record) {
  if (record.project == 0) return {};
  KEELSON_ASSIGN_OR_RETURN(bool quotas, HasProjectQuotas(context.store.directory()));
  return quotas ? SetProjectLimit(context.store.directory(), record.project, 0) : Result<>();
}

}  // namespace keelson::csi::local
