#include "cni/lib/link_removal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/fd.h"

namespace keelson::cni {
namespace {

// Runs in the child: deletes the link, reports the result, ends.
[[noreturn]] void DeleteAndReport(netlink::Socket& socket, const std::string& name, int report) {
  LetGoOfStandardStreams();
  char begun = 0;
  (void)!::write(report, &begun, 1);
  Result<bool> deleted = netlink::DeleteLink(socket, name);
  int failed = deleted ? 0 : std::max(deleted.error().errnum(), 1);
  (void)!::write(report, &failed, sizeof failed);
  ::_exit(0);
}

// The child's errno; nothing when none arrives within `timeout_ms`.
std::optional<int> ReadReport(int report, int timeout_ms) {
  pollfd waiting{.fd = report, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
  int failed = 0;
  ssize_t got = ::read(report, &failed, sizeof failed);
  if (got != static_cast<ssize_t>(sizeof failed)) return EIO;  // killed
  return failed;
}

}  // namespace

void LetGoOfStandardStreams() {
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
}

Outcome<> RemoveLink(netlink::Socket& child_socket, netlink::Socket& own, const std::string& name) {
  Result<netlink::Link> there = netlink::GetLink(own, name);
  if (!there && there.error().Is(Code::kNotFound)) return {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("make pipe");
  UniqueFd report(ends[0]), child_report(ends[1]);
  pid_t child = ::fork();
  if (child < 0) return ErrnoError("fork");
  if (child == 0) DeleteAndReport(child_socket, name, child_report.get());
  child_report.Reset();
  char begun;
  // The child's request and the query below need the same lock. Usually the query returns when the
  // interface is off the list, while the child is still busy.
  if (::read(report.get(), &begun, 1) != 1) {
    return CniError{kInternalFailure, "delete " + name + ": killed", ""};
  }
  for (int waited = 0;; ++waited) {
    std::optional<int> failed = ReadReport(report.get(), waited == 0 ? 0 : 1);
    if (failed) {
      ::waitpid(child, nullptr, 0);
      if (*failed == 0) return {};
      return Error::FromErrno(*failed, "delete " + name);
    }
    Result<netlink::Link> link = netlink::GetLink(own, name);
    if (!link && link.error().Is(Code::kNotFound)) return {};
  }
}

}  // namespace keelson::cni
