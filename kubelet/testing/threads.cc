#include "kubelet/testing/threads.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "lib/base/file.h"

namespace keelson::kubelet {

bool OthersAtWork() {
  const std::string own = std::to_string(::gettid());
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (task.path().filename() == own) continue;
    auto stat = ReadFile(task.path() / "stat");
    if (!stat) continue;  // it has ended
    const size_t name_end = stat->rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat->size()) continue;
    const char state = (*stat)[name_end + 2];
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

}  // namespace keelson::kubelet
