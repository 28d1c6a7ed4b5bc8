#include "kubelet/volume/atomic_writer.h"

#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

constexpr char kData[] = "..data";
constexpr char kDataNew[] = "..data_tmp";

Result<> CheckPath(const std::string& path) {
  bool bad = path.empty() || path[0] == '/' || path.size() > 4096 || path.compare(0, 2, "..") == 0;
  for (size_t begin = 0; !bad && begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    bad = path.compare(begin, end - begin, "..") == 0 || end - begin > 255;
    begin = end + 1;
  }
  if (bad) return Error(Code::kInvalid, "invalid path in volume: \"" + path + "\"");
  return {};
}

std::string ReadLink(const std::string& path) {
  char buffer[4096];
  ssize_t size = ::readlink(path.c_str(), buffer, sizeof(buffer));
  return size < 0 ? std::string() : std::string(buffer, static_cast<size_t>(size));
}

mode_t ModeOf(const PayloadFile& file, std::optional<gid_t> group) {
  return group ? file.mode | 0440 : file.mode;
}

bool SameFile(const std::string& path, const PayloadFile& file, std::optional<gid_t> group) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if ((info.st_mode & 07777) != ModeOf(file, group)) return false;
  if (static_cast<size_t>(info.st_size) != file.data.size()) return false;
  auto data = ReadFile(path);
  return data && *data == file.data;
}

void ListFiles(const std::string& dir, const std::string& prefix, std::set<std::string>& out) {
  auto names = ListDir(dir);
  if (!names) return;
  for (const std::string& name : *names) {
    struct stat info = {};
    if (::lstat((dir + "/" + name).c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      ListFiles(dir + "/" + name, prefix + name + "/", out);
    } else {
      out.insert(prefix + name);
    }
  }
}

bool UpToDate(const std::string& version_dir, const Payload& payload, std::optional<gid_t> group) {
  std::set<std::string> files;
  ListFiles(version_dir, "", files);
  if (files.size() != payload.size()) return false;
  for (const auto& [path, file] : payload) {
    if (!SameFile(version_dir + "/" + path, file, group)) return false;
  }
  return true;
}

Result<> WriteVersion(const std::string& dir, const Payload& payload, std::optional<gid_t> group) {
  if (::mkdir(dir.c_str(), 0755) != 0) return ErrnoError("create " + dir);
  if (::chmod(dir.c_str(), group ? 02755 : 0755) != 0) return ErrnoError("chmod " + dir);
  if (group && ::chown(dir.c_str(), -1, *group) != 0) return ErrnoError("chown " + dir);
  for (const auto& [path, file] : payload) {
    std::string full = dir + "/" + path;
    if (size_t slash = path.rfind('/'); slash != std::string::npos) {
      KEELSON_RETURN_IF_ERROR(MakeDirs(dir + "/" + path.substr(0, slash)));
    }
    KEELSON_RETURN_IF_ERROR(WriteFile(full, file.data, 0600));
    uid_t owner = file.owner.value_or(static_cast<uid_t>(-1));
    gid_t gid = group.value_or(static_cast<gid_t>(-1));
    if ((file.owner || group) && ::chown(full.c_str(), owner, gid) != 0) return ErrnoError("chown " + full);
    if (::chmod(full.c_str(), ModeOf(file, group)) != 0) return ErrnoError("chmod " + full);
  }
  return {};
}

// First components of the paths: what users see in the volume's directory.
std::set<std::string> TopNames(const Payload& payload) {
  std::set<std::string> names;
  for (const auto& [path, file] : payload) names.insert(path.substr(0, path.find('/')));
  return names;
}

Result<> LinkNames(const std::string& dir, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    std::string link = dir + "/" + name;
    if (ReadLink(link) == std::string(kData) + "/" + name) continue;
    if (::symlink((std::string(kData) + "/" + name).c_str(), link.c_str()) != 0) {
      return ErrnoError("symlink " + link);
    }
  }
  KEELSON_ASSIGN_OR_RETURN(auto present, ListDir(dir));
  for (const std::string& name : present) {
    if (name.compare(0, 2, "..") != 0 && !names.count(name)) {
      KEELSON_RETURN_IF_ERROR(RemoveFile(dir + "/" + name));
    }
  }
  return {};
}

}  // namespace

Result<bool> WritePayload(const std::string& dir, const Payload& payload, std::optional<gid_t> group,
                          Clock& clock) {
  for (const auto& [path, file] : payload) KEELSON_RETURN_IF_ERROR(CheckPath(path));
  std::string old = ReadLink(dir + "/" + kData);
  if (!old.empty() && UpToDate(dir + "/" + old, payload, group)) {
    KEELSON_RETURN_IF_ERROR(LinkNames(dir, TopNames(payload)));
    return false;
  }
  auto since_epoch = clock.Now().time_since_epoch();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch - seconds).count();
  std::string version = fmt::format("..{:%Y_%m_%d_%H_%M_%S}.{:09}",
                                    fmt::gmtime(static_cast<std::time_t>(seconds.count())), nanos);
  while (PathExists(dir + "/" + version)) version += "0";
  if (auto written = WriteVersion(dir + "/" + version, payload, group); !written) {
    (void)RemoveTree(dir + "/" + version);
    return written.error();
  }
  KEELSON_RETURN_IF_ERROR(RemoveFile(dir + "/" + kDataNew));
  if (::symlink(version.c_str(), (dir + "/" + kDataNew).c_str()) != 0) return ErrnoError("symlink in " + dir);
  if (::rename((dir + "/" + kDataNew).c_str(), (dir + "/" + kData).c_str()) != 0) {
    return ErrnoError("rename in " + dir);
  }
  KEELSON_RETURN_IF_ERROR(LinkNames(dir, TopNames(payload)));
  if (!old.empty()) KEELSON_RETURN_IF_ERROR(RemoveTree(dir + "/" + old));
  return true;
}

}  // namespace keelson::kubelet
