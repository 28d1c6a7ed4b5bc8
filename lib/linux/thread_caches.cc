#include "lib/linux/thread_caches.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string_view>

namespace keelson::linux {
namespace {

constexpr char kVariable[] = "GLIBC_TUNABLES";
constexpr std::string_view kTunable = "glibc.malloc.tcache_count";

}  // namespace

std::optional<std::string> WithoutThreadCaches(const char* tunables) {
  std::string out = tunables ? tunables : "";
  if (out.find(kTunable) != std::string::npos) return std::nullopt;
  if (!out.empty()) out += ':';
  return out.append(kTunable) + "=0";
}

void RestartWithoutThreadCaches(char** argv) {
  std::optional<std::string> wanted = WithoutThreadCaches(std::getenv(kVariable));
  if (!wanted || ::setenv(kVariable, wanted->c_str(), 1) != 0) return;
  // Execute the real path, not /proc/self/exe: the kernel names a process after the last part of the path.
  char path[PATH_MAX];
  ssize_t size = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return;
  path[size] = '\0';
  ::execv(path, argv);
}

}  // namespace keelson::linux
