#include "lib/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace keelson {
namespace {

Error PathError(std::string_view verb, const std::string& path) {
  int saved = errno;
  return Error::FromErrno(saved, std::string(verb) + " " + path);
}

std::string ParentOf(const std::string& path) {
  auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) return PathError("open", path);
  return fd;
}

Result<std::string> ReadAll(int fd, std::string_view what) {
  std::string data;
  char buffer[16384];
  for (;;) {
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoError("read " + std::string(what));
    }
    if (n == 0) return data;
    data.append(buffer, static_cast<size_t>(n));
  }
}

Result<std::string> ReadFile(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY));
  return ReadAll(fd.get(), path);
}

Result<> WriteAll(int fd, std::string_view data, std::string_view what) {
  while (!data.empty()) {
    ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoError("write " + std::string(what));
    }
    data.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<> WriteFile(const std::string& path, std::string_view data, mode_t mode) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC, mode));
  return WriteAll(fd.get(), data, path);
}

Result<> WriteFileAtomic(const std::string& path, std::string_view data, mode_t mode) {
  std::string temporary = path + ".tmpXXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return PathError("create", temporary);
  auto written = [&]() -> Result<> {
    KEELSON_RETURN_IF_ERROR(WriteAll(fd.get(), data, temporary));
    if (::fchmod(fd.get(), mode) != 0) return PathError("chmod", temporary);
    if (::fsync(fd.get()) != 0) return PathError("fsync", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return PathError("rename to", path);
    return {};
  }();
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  KEELSON_ASSIGN_OR_RETURN(UniqueFd dir, OpenFile(ParentOf(path), O_RDONLY | O_DIRECTORY));
  if (::fsync(dir.get()) != 0) return PathError("fsync directory of", path);
  return {};
}

Result<> MakeDirs(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  if (errno == EEXIST) {
    struct stat st;
    if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
    return Error::FromErrno(ENOTDIR, "mkdir " + path);
  }
  if (errno != ENOENT) return PathError("mkdir", path);
  KEELSON_RETURN_IF_ERROR(MakeDirs(ParentOf(path), mode));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return PathError("mkdir", path);
  return {};
}

Result<> RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return PathError("unlink", path);
  return {};
}

Result<> RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return Error::FromErrno(error.value(), "remove " + path);
  return {};
}

bool PathExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<std::vector<std::string>> ListDir(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (!dir) return PathError("open directory", path);
  std::vector<std::string> names;
  while (dirent* entry = ::readdir(dir.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace keelson
