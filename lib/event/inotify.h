// File system events for blocking code: one Inotify object per waiting thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::event {

struct FileEvent {
  int watch = -1;     // what Add() returned; -1 when events were lost (look at everything again)
  uint32_t mask = 0;  // IN_*
  std::string name;   // entry of a watched directory; else empty
};

class Inotify {
 public:
  static Result<Inotify> Create();
  // Watches `path` for the IN_* events in `mask`. Returns the watch, which FileEvent::watch names.
  Result<int> Add(const std::string& path, uint32_t mask);
  void Remove(int watch);
  // Blocks until there is at least one event. kTimeout after `timeout`, kCancelled when `stop` is
  // requested.
  Result<std::vector<FileEvent>> Wait(std::stop_token stop, std::chrono::milliseconds timeout);

 private:
  Inotify(UniqueFd fd, UniqueFd wake) : fd_(std::move(fd)), wake_(std::move(wake)) {}
  UniqueFd fd_, wake_;
};

}  // namespace keelson::event
