#include "lib/event/inotify.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>

namespace keelson::event {

Result<Inotify> Inotify::Create() {
  UniqueFd fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return ErrnoError("inotify_init");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError("eventfd");
  return Inotify(std::move(fd), std::move(wake));
}

Result<int> Inotify::Add(const std::string& path, uint32_t mask) {
  int watch = inotify_add_watch(fd_.get(), path.c_str(), mask);
  if (watch < 0) return ErrnoError("watch " + path);
  return watch;
}

void Inotify::Remove(int watch) { inotify_rm_watch(fd_.get(), watch); }

Result<std::vector<FileEvent>> Inotify::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  std::stop_callback on_stop(stop, [&] { eventfd_write(wake_.get(), 1); });
  auto deadline = std::chrono::steady_clock::now() + std::min(timeout, std::chrono::milliseconds(1 << 30));
  for (;;) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "wait for file events: stopped");
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd fds[2] = {{fd_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    int n = poll(fds, 2, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (n < 0 && errno != EINTR) return ErrnoError("poll");
    if (n == 0) return Error(Code::kTimeout, "wait for file events: nothing happened");
    // Clear a stop that has been handled: it would wake later waits at once, and they would never reach
    // their timeout.
    if (eventfd_t stops = 0; n > 0 && fds[1].revents) (void)eventfd_read(wake_.get(), &stops);
    if (n < 0 || !fds[0].revents) continue;
    alignas(inotify_event) char buffer[4096];
    ssize_t size = read(fd_.get(), buffer, sizeof buffer);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size < 0) return ErrnoError("read inotify");
    std::vector<FileEvent> events;
    for (char* at = buffer; at < buffer + size;) {
      auto* event = reinterpret_cast<inotify_event*>(at);
      events.push_back({event->wd, event->mask, event->len ? std::string(event->name) : std::string()});
      at += sizeof(inotify_event) + event->len;
    }
    return events;
  }
}

}  // namespace keelson::event
