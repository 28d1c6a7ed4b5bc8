#include "ctl/etcd/snapshots.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "ctl/etcd/plan.h"
#include "ctl/etcd/report.h"
#include "ctl/etcd/view.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

namespace fs = std::filesystem;

Result<> CheckRoom(const std::string& directory, int64_t wanted) {
  struct statvfs room {};
  if (::statvfs(directory.c_str(), &room) != 0) return ErrnoError(directory);
  const auto free = static_cast<int64_t>(room.f_bavail * room.f_frsize);
  if (free >= wanted) return {};
  return Error(Code::kUnavailable, directory + " has " + SizeText(free) + " free, and the snapshot needs " +
                                       SizeText(wanted) + ": make room, or choose another directory");
}

// An etcd holds this lock as long as it has its database open (bbolt).
Result<UniqueFd> LockDatabase(const std::string& data) {
  const std::string file = data + "/member/snap/db";
  if (!PathExists(file)) return UniqueFd();
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(file, O_RDWR));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoError("lock " + file);
  return Error(Code::kConflict, "an etcd runs with the data in " + data +
                                    ": stop it first, on every machine of the cluster ('systemctl stop "
                                    "kube-controlplane')");
}

// The files get the owner of the directory around them, and reach the disk.
Result<> Settle(const std::string& tree, const std::string& around) {
  struct stat owner {};
  if (::stat(around.c_str(), &owner) != 0) return ErrnoError(around);
  std::error_code failed;
  std::vector<std::string> paths = {tree};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree, failed)) {
    paths.push_back(entry.path());
  }
  if (failed) return Error::FromErrno(failed.value(), tree);
  for (const std::string& path : paths) {
    if (::lchown(path.c_str(), owner.st_uid, owner.st_gid) != 0) return ErrnoError("chown " + path);
  }
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(tree, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) != 0) return ErrnoError("sync " + tree);
  return {};
}

Result<> SyncDirectory(const std::string& directory) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return ErrnoError("sync " + directory);
  return {};
}

Result<> Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return ErrnoError("rename " + from);
  return {};
}

std::string Absolute(const std::string& path) { return fs::absolute(path).lexically_normal(); }

}  // namespace

Result<etcd::SnapshotInfo> SaveEtcdSnapshot(const EtcdAccess& access, const std::string& path) {
  const std::string directory = fs::absolute(path).parent_path();
  return etcd::SaveSnapshot(path, [&](const auto& each) {
    return WithAnyMember(access, [&](etcd::Member& member) -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(const etcd::MemberStatus status, member.Status());
      KEELSON_RETURN_IF_ERROR(CheckRoom(directory, status.db_size));
      // A second member cannot go on where the first one stopped.
      Result<> streamed = member.Snapshot(each);
      if (streamed || !streamed.error().Is(Code::kUnavailable)) return streamed;
      return Error(Code::kInternal, streamed.error().message());
    });
  });
}

Result<std::string> SaveInDirectory(const EtcdAccess& access, const std::string& directory, size_t keep,
                                    int64_t unix_seconds, std::ostream& out) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(directory, 0700));
  KEELSON_ASSIGN_OR_RETURN(UniqueFd lock, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error(Code::kConflict, "another process takes a snapshot into " + directory);
  }
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(directory));
  for (const std::string& name : Leftovers(names)) {
    KEELSON_RETURN_IF_ERROR(RemoveFile(directory + "/" + name));
  }
  std::string path = directory + "/" + SnapshotName(unix_seconds);
  KEELSON_ASSIGN_OR_RETURN(const etcd::SnapshotInfo info, SaveEtcdSnapshot(access, path));
  out << "Snapshot saved at " << path << " (" << SizeText(info.bytes) << ")\n";
  if (keep == 0) return path;
  // The new one is complete before an old one goes.
  KEELSON_ASSIGN_OR_RETURN(names, ListDir(directory));
  for (const std::string& name : Outdated(names, keep)) {
    KEELSON_RETURN_IF_ERROR(RemoveFile(directory + "/" + name));
    out << "Removed " << name << "\n";
  }
  return path;
}

Result<> RestoreEtcd(const RestoreWish& wish, int64_t unix_seconds, std::ostream& out) {
  KEELSON_RETURN_IF_ERROR(etcd::CheckSnapshot(wish.snapshot));
  const std::string directory = Absolute(wish.directory), data = directory + "/data";
  const std::string making = data + ".restoring";
  const std::string stamp = SnapshotName(unix_seconds).substr(std::string_view("keelson-etcd-").size(), 16);
  const std::string aside = data + ".before-" + stamp;
  // Held until the end: an etcd that is started meanwhile waits.
  KEELSON_ASSIGN_OR_RETURN(const UniqueFd lock, LockDatabase(data));
  const bool present = PathExists(data);
  if (present && !wish.replace) {
    return Error(Code::kAlreadyExists,
                 data + " exists: --force puts the snapshot in its place, and keeps it as " + aside);
  }
  if (present && PathExists(aside)) return Error(Code::kAlreadyExists, aside + " exists: try again");
  KEELSON_RETURN_IF_ERROR(MakeDirs(directory, 0700));
  KEELSON_RETURN_IF_ERROR(RemoveTree(making));  // of a restore that was killed: it was never in use
  out << "[restore] Making a data directory of " << wish.snapshot << "\n" << std::flush;
  KEELSON_RETURN_IF_ERROR(etcd::RestoreSnapshot(wish.snapshot, making, wish.member));
  KEELSON_RETURN_IF_ERROR(Settle(making, directory));
  if (!present) {
    KEELSON_RETURN_IF_ERROR(Rename(making, data));
  } else {
    // There is a data directory at every moment: without one the control plane would begin an empty cluster.
    KEELSON_RETURN_IF_ERROR(Rename(making, aside));
    if (::renameat2(AT_FDCWD, data.c_str(), AT_FDCWD, aside.c_str(), RENAME_EXCHANGE) != 0) {
      return ErrnoError("exchange " + data + " and " + aside);
    }
    out << "[restore] The data that was there is in " << aside << "\n";
  }
  KEELSON_RETURN_IF_ERROR(SyncDirectory(directory));
  out << "[restore] Restored into " << data << "\n";
  return {};
}

}  // namespace keelson::ctl
