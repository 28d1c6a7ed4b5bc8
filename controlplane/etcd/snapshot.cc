#include "controlplane/etcd/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "controlplane/etcd/child.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/crypto/digest.h"

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

bool InPath(const std::string& name) {
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    size_t colon = rest.find(':');
    if (access((std::string(rest.substr(0, colon)) + "/" + name).c_str(), X_OK) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

// Runs etcd's own tool to its end; returns its output.
Result<std::string> RunTool(std::vector<std::string> arguments) {
  std::string tool;
  for (const char* name : {"etcdutl", "etcdctl"}) {
    if (tool.empty() && InPath(name)) tool = name;
  }
  if (tool.empty()) {
    return Error(Code::kNotFound,
                 "neither etcdutl nor etcdctl is in PATH; Debian has etcdctl in the package etcd-client");
  }
  arguments.insert(arguments.begin(), tool);
  char made[] = "/tmp/keelson-etcd-XXXXXX";
  UniqueFd log(mkstemp(made));
  if (!log) return ErrnoError("temporary file");
  Result<Child> child = Child::Start(arguments, "/", made);
  std::string how = child ? child->Wait() : "";
  Result<std::string> output = ReadFile(made);
  unlink(made);
  if (!child) return child.error();
  if (!output) return output.error();
  if (how != "exited with 0") {
    return Error(Code::kInternal, fmt::format("{} {}: {}", tool, how, output->substr(0, 2000)));
  }
  return output;
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

Result<SnapshotInfo> SaveSnapshot(const ClientOptions& options, const std::string& path,
                                  std::stop_token stop) {
  const std::string part = path + ".part";
  auto save = [&]() -> Result<SnapshotInfo> {
    KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(part, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    Client client(options);
    KEELSON_RETURN_IF_ERROR(
        client.Snapshot([&](std::string_view piece) { return WriteAll(fd.get(), piece, part); }, stop));
    if (fsync(fd.get()) != 0) return ErrnoError(part);
    KEELSON_ASSIGN_OR_RETURN(SnapshotInfo info, CheckSnapshot(part));
    if (rename(part.c_str(), path.c_str()) != 0) return ErrnoError(path);
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

Result<> RestoreSnapshot(const std::string& path, const std::string& data_dir) {
  KEELSON_RETURN_IF_ERROR(CheckSnapshot(path));
  const std::string target = std::filesystem::absolute(data_dir).string() + "/data";
  if (PathExists(target)) {
    return Error(Code::kAlreadyExists, target + " exists; move it away before restoring a snapshot");
  }
  KEELSON_RETURN_IF_ERROR(MakeDirs(data_dir, 0700));
  // The only member; its addresses are set at each start.
  Result<std::string> done =
      RunTool({"snapshot", "restore", std::filesystem::absolute(path), "--data-dir=" + target,
               "--name=default", "--initial-cluster=default=https://127.0.0.1:2380",
               "--initial-advertise-peer-urls=https://127.0.0.1:2380"});
  if (done) return {};
  (void)RemoveTree(target);
  return done.error();
}

}  // namespace keelson::etcd
