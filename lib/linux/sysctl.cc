#include "lib/linux/sysctl.h"

#include <fcntl.h>

#include "lib/base/file.h"

namespace keelson::linux {
namespace {

std::string PathOf(std::string_view key) { return "/proc/sys/" + std::string(key); }

}  // namespace

Result<std::string> ReadSysctl(std::string_view key) {
  KEELSON_ASSIGN_OR_RETURN(std::string value, ReadFile(PathOf(key)));
  while (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

Result<> WriteSysctl(std::string_view key, std::string_view value) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(PathOf(key), O_WRONLY));
  return WriteAll(fd.get(), value, PathOf(key));
}

Result<> EnsureSysctl(std::string_view key, std::string_view value) {
  Result<std::string> now = ReadSysctl(key);
  if (now && *now == value) return {};
  return WriteSysctl(key, value);
}

}  // namespace keelson::linux
