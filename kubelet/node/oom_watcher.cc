#include "kubelet/node/oom_watcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

// The value of "key=..." up to a comma; empty when it is not there.
std::string ValueOf(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 1;
  return text.substr(begin, text.find(',', begin) - begin);
}

}  // namespace

std::optional<OomKill> OomParser::Feed(const std::string& record) {
  const size_t semicolon = record.find(';');
  const std::string text =
      record.substr(semicolon == std::string::npos ? 0 : semicolon + 1,
                    record.find('\n') - (semicolon == std::string::npos ? 0 : semicolon + 1));
  if (text.compare(0, 9, "oom-kill:") == 0) {
    const bool machine = ValueOf(text, "oom-kill:constraint") != "CONSTRAINT_MEMCG";
    constraint_group_ = machine ? "/" : ValueOf(text, "oom_memcg");
    return std::nullopt;
  }
  const size_t killed = text.find("Killed process ");
  if (killed == std::string::npos) return std::nullopt;
  OomKill out;
  out.pid = std::atoi(text.c_str() + killed + sizeof("Killed process ") - 1);
  const size_t open = text.find('(', killed), close = text.find(')', killed);
  if (open != std::string::npos && close != std::string::npos && close > open) {
    out.process = text.substr(open + 1, close - open - 1);
  }
  // Kernels that do not say it in a line of its own begin this one with whose memory it was.
  const bool of_group = text.compare(0, 13, "Memory cgroup") == 0;
  out.cgroup = constraint_group_.empty() ? (of_group ? "" : "/") : constraint_group_;
  constraint_group_.clear();
  return out;
}

Result<> WatchOom(const std::function<void(const OomKill& kill)>& each, std::stop_token stop,
                  const std::string& log) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(log, O_RDONLY | O_NONBLOCK));
  if (::lseek(fd.get(), 0, SEEK_END) < 0) return ErrnoError("seek " + log);
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError("eventfd");
  std::stop_callback on_stop(stop, [&wake] {
    const uint64_t one = 1;
    (void)!::write(wake.get(), &one, sizeof(one));
  });
  OomParser parser;
  char record[8192];
  while (!stop.stop_requested()) {
    pollfd waits[] = {{fd.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return ErrnoError("poll " + log);
    const ssize_t size = ::read(fd.get(), record, sizeof(record));
    // EPIPE: records were overwritten before they were read.
    if (size < 0 && errno != EAGAIN && errno != EPIPE && errno != EINTR) return ErrnoError("read " + log);
    if (size <= 0) continue;
    if (auto kill = parser.Feed(std::string(record, static_cast<size_t>(size)))) each(*kill);
  }
  return {};
}

}  // namespace keelson::kubelet
