#include "controlplane/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "lib/base/file.h"

namespace keelson::controlplane {
namespace {

Result<UniqueFd> Filled(const char* name, const std::string& content) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd) return ErrnoError(name);
  KEELSON_RETURN_IF_ERROR(WriteAll(fd.get(), content, name));
  return fd;
}

}  // namespace

MemoryFile::MemoryFile(const char* name, UniqueFd fd)
    : name_(name), fd_(std::move(fd)), path_(fmt::format("/proc/{}/fd/{}", getpid(), fd_.get())) {}

Result<MemoryFile> MemoryFile::Make(const char* name, const std::string& content) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Filled(name, content));
  return MemoryFile(name, std::move(fd));
}

Result<> MemoryFile::Replace(const std::string& content) {
  KEELSON_ASSIGN_OR_RETURN(const UniqueFd fresh, Filled(name_, content));
  if (dup3(fresh.get(), fd_.get(), O_CLOEXEC) < 0) return ErrnoError(name_);
  return {};
}

std::string MemoryFile::Keep() && {
  fd_.Release();
  return std::move(path_);
}

}  // namespace keelson::controlplane
