#include "kubelet/node/oom_victims.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

namespace {

// Whoever asks does so soon after a container's end.
constexpr size_t kKept = 1000;

}  // namespace

std::optional<std::string> OomVictimGroup(std::string_view record) {
  // "6,1234,5678,-;text", then lines of what the text is about.
  std::string_view text = record.substr(record.find(';') + 1);
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kOne = "oom-kill:", kGroup = ",task_memcg=";
  // memory.oom.group. The other line is held back when there are many of it, this one is not.
  constexpr std::string_view kAll = "Tasks in ",
                             kAllEnd = " are going to be killed due to memory.oom.group set";
  if (text.starts_with(kOne)) {
    const size_t at = text.find(kGroup);
    if (at == std::string_view::npos) return std::nullopt;
    text.remove_prefix(at + kGroup.size());
    return std::string(text.substr(0, text.find(',')));
  }
  const size_t end = text.find(kAllEnd);
  if (!text.starts_with(kAll) || end == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(kAll.size(), end - kAll.size()));
}

OomVictims OomVictims::OfKernelLog(const std::string& path) {
  auto opened = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (opened) return OomVictims(std::move(*opened));
  log::Warn("Only the container runtime tells who is killed for lack of memory", {{"err", opened.error()}});
  return OomVictims(UniqueFd());
}

void OomVictims::ReadOn() {
  char record[8192];
  while (log_) {
    const ssize_t size = ::read(log_.get(), record, sizeof(record));
    if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: older ones were overwritten
    if (size <= 0) return;
    auto group = OomVictimGroup({record, static_cast<size_t>(size)});
    if (!group) continue;
    groups_.push_back(std::move(*group));
    if (groups_.size() > kKept) groups_.pop_front();
  }
}

bool OomVictims::Has(const std::string& container_id) {
  MutexLock lock(mutex_);
  ReadOn();
  // cri-containerd-<id>.scope or <id>, or a cgroup that was made below it.
  return std::any_of(groups_.rbegin(), groups_.rend(),
                     [&](const std::string& group) { return group.find(container_id) != std::string::npos; });
}

}  // namespace keelson::kubelet
