#include "lib/etcd/snapshot.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/crypto/digest.h"
#include "lib/event/process.h"

namespace keelson::etcd {
namespace {

constexpr int64_t kHash = 32, kPage = 512;
// The offset of bbolt's magic number in its first metadata page.
constexpr int64_t kMagicAt = 16;
constexpr unsigned char kMagic[] = {0xED, 0xDA, 0x0C, 0xED};

Error NoSnapshot(const std::string& path, std::string_view why) {
  return Error(Code::kInvalid, fmt::format("{}: {}", path, why));
}

// The SHA-256 of the first `size` bytes.
Result<std::string> HashOf(int fd, int64_t size, const std::string& path) {
  crypto::Sha256Sum sum;
  std::string buffer(1 << 20, '\0');
  for (int64_t at = 0; at < size;) {
    size_t want = static_cast<size_t>(std::min<int64_t>(size - at, static_cast<int64_t>(buffer.size())));
    ssize_t got = pread(fd, buffer.data(), want, at);
    if (got < 0) return ErrnoError(path);
    if (got == 0) return NoSnapshot(path, "the snapshot is cut off");
    sum.Add({buffer.data(), static_cast<size_t>(got)});
    at += got;
  }
  return sum.Finish();
}

// Runs etcd's own tool to its end; returns what it prints on both outputs.
Result<std::string> RunTool(std::vector<std::string> arguments) {
  UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
  if (!output) return ErrnoError("memfd_create");
  event::ProcessOptions options;
  options.output_file = "/proc/self/fd/" + std::to_string(output.get());
  options.working_directory = "/";
  options.env = {{"ETCDCTL_API", "3"}};
  options.die_with_parent = true;
  options.argv = std::move(arguments);
  // etcdctl of 3.6 has no such verbs, and that of 3.4 is alone.
  for (const char* tool : {"etcdutl", "etcdctl"}) {
    options.argv.insert(options.argv.begin(), tool);
    Result<event::Process> process = event::Process::Start(options);
    options.argv.erase(options.argv.begin());
    if (!process && process.error().Is(Code::kNotFound)) continue;
    if (!process) return process.error();
    KEELSON_ASSIGN_OR_RETURN(const event::ExitStatus status, process->Wait({}));
    if (::lseek(output.get(), 0, SEEK_SET) < 0) return ErrnoError("lseek");
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadAll(output.get(), tool));
    if (status.ok()) return text;
    return Error(Code::kInternal, fmt::format("{} {}: {}", tool, status.ToString(), text.substr(0, 2000)));
  }
  return Error(Code::kNotFound,
               "neither etcdutl nor etcdctl is in PATH; Debian has etcdctl in the package etcd-client");
}

}  // namespace

Result<SnapshotInfo> CheckSnapshot(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY));
  struct stat state {};
  if (fstat(fd.get(), &state) != 0) return ErrnoError(path);
  const int64_t size = state.st_size - kHash;
  unsigned char magic[sizeof kMagic] = {};
  if (size < kPage || pread(fd.get(), magic, sizeof magic, kMagicAt) != sizeof magic ||
      std::memcmp(magic, kMagic, sizeof magic) != 0) {
    return NoSnapshot(path, "this is no snapshot of etcd");
  }
  if (size % kPage != 0) return NoSnapshot(path, "the snapshot is cut off, or has no hash");
  KEELSON_ASSIGN_OR_RETURN(std::string hash, HashOf(fd.get(), size, path));
  std::string expected(kHash, '\0');
  if (pread(fd.get(), expected.data(), kHash, size) != kHash || expected != hash) {
    return NoSnapshot(path, "the snapshot is damaged: its hash does not fit");
  }
  return SnapshotInfo{state.st_size};
}

Result<SnapshotInfo> SaveSnapshot(const std::string& path, const TakeSnapshot& take) {
  const std::string part = path + ".part";
  auto save = [&]() -> Result<SnapshotInfo> {
    KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(part, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    KEELSON_RETURN_IF_ERROR(take([&](std::string_view piece) { return WriteAll(fd.get(), piece, part); }));
    if (fsync(fd.get()) != 0) return ErrnoError(part);
    KEELSON_ASSIGN_OR_RETURN(SnapshotInfo info, CheckSnapshot(part));
    if (rename(part.c_str(), path.c_str()) != 0) return ErrnoError(path);
    // The name too is to survive a power cut.
    const std::string directory = std::filesystem::absolute(path).parent_path();
    KEELSON_ASSIGN_OR_RETURN(UniqueFd parent, OpenFile(directory, O_RDONLY | O_DIRECTORY));
    if (fsync(parent.get()) != 0) return ErrnoError(directory);
    return info;
  };
  Result<SnapshotInfo> saved = save();
  if (!saved) unlink(part.c_str());
  return saved;
}

Result<std::string> DescribeSnapshot(const std::string& path) {
  KEELSON_RETURN_IF_ERROR(CheckSnapshot(path));
  return RunTool({"snapshot", "status", std::filesystem::absolute(path), "--write-out=json"});
}

Result<> RestoreSnapshot(const std::string& path, const std::string& data, const RestoredMember& member) {
  KEELSON_RETURN_IF_ERROR(CheckSnapshot(path));
  const std::string target = std::filesystem::absolute(data).string();
  if (PathExists(target)) {
    return Error(Code::kAlreadyExists, target + " exists; move it away before restoring a snapshot");
  }
  KEELSON_RETURN_IF_ERROR(MakeDirs(std::filesystem::path(target).parent_path(), 0700));
  std::vector<std::string> arguments = {
      "snapshot",
      "restore",
      std::filesystem::absolute(path),
      "--data-dir=" + target,
      "--name=" + member.name,
      "--initial-advertise-peer-urls=" + member.peer_url,
      "--initial-cluster=" + (member.cluster.empty() ? member.name + "=" + member.peer_url : member.cluster)};
  if (!member.token.empty()) arguments.push_back("--initial-cluster-token=" + member.token);
  Result<std::string> done = RunTool(std::move(arguments));
  if (done) return {};
  (void)RemoveTree(target);
  return done.error();
}

}  // namespace keelson::etcd
