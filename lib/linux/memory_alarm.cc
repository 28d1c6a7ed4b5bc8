#include "lib/linux/memory_alarm.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>

#include "lib/base/file.h"

namespace keelson::linux {

namespace {

// The smallest window that a process without CAP_SYS_RESOURCE may ask for.
constexpr char kTrigger[] = "some 200000 2000000";

UniqueFd WatchPressure() {
  UniqueFd fd(::open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd && ::write(fd.get(), kTrigger, sizeof(kTrigger)) < 0) fd.Reset();
  return fd;
}

void Drain(int fd) {
  char buffer[4096];
  while (::read(fd, buffer, sizeof(buffer)) > 0) {
  }
}

}  // namespace

MemoryAlarm::MemoryAlarm(Cgroups cgroups, std::vector<std::string> paths)
    : cgroups_(std::move(cgroups)),
      paths_(std::move(paths)),
      thresholds_(paths_.size()),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!cgroups_.unified()) return;
  pressure_ = WatchPressure();
  changes_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (const std::string& path : paths_) {  // the root has no limits, and no such file
    if (changes_) {
      ::inotify_add_watch(changes_.get(), (cgroups_.MemoryDir(path) + "/memory.events").c_str(), IN_MODIFY);
    }
  }
}

Result<> MemoryAlarm::Arm(size_t index, int64_t growth_bytes) {
  if (cgroups_.unified()) return {};
  thresholds_[index].Reset();
  const auto used = static_cast<int64_t>(cgroups_.Usage(paths_[index]).memory_bytes.value_or(0));
  const std::string dir = cgroups_.MemoryDir(paths_[index]);
  KEELSON_ASSIGN_OR_RETURN(const UniqueFd usage, OpenFile(dir + "/memory.usage_in_bytes", O_RDONLY));
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return ErrnoError("eventfd");
  KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/cgroup.event_control", std::to_string(event.get()) + " " +
                                                                       std::to_string(usage.get()) + " " +
                                                                       std::to_string(used + growth_bytes)));
  thresholds_[index] = std::move(event);
  return {};
}

bool MemoryAlarm::Wait(std::chrono::milliseconds limit, std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { (void)::eventfd_write(stop_.get(), 1); });
  std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0},
                               {pressure_ ? pressure_.get() : -1, POLLPRI, 0},
                               {changes_ ? changes_.get() : -1, POLLIN, 0}};
  for (const UniqueFd& fd : thresholds_) waits.push_back({fd ? fd.get() : -1, POLLIN, 0});
  if (::poll(waits.data(), waits.size(), static_cast<int>(limit.count())) <= 0) return false;
  bool told = false;
  for (size_t i = 1; i < waits.size(); ++i) {
    if (waits[i].revents == 0) continue;
    told = true;
    if (waits[i].events == POLLIN) Drain(waits[i].fd);
    if (i == 1 && (waits[i].revents & POLLERR)) pressure_.Reset();  // the kernel has dropped the trigger
  }
  return told && !stop.stop_requested();
}

}  // namespace keelson::linux
