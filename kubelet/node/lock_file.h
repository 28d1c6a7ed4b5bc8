// --lock-file: only the kubelet that holds the lock on a file (flock(2)) runs, others wait.
#pragma once

#include <stop_token>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/event/inotify.h"

namespace keelson::kubelet {

class LockFile {
 public:
  // Creates the file if needed, and blocks until it has the lock. The object holds the lock while it lives.
  static Result<LockFile> Take(const std::string& path);

  // Blocks until another process has opened or removed the file since Take() (--exit-on-lock-contention), or
  // `stop`.
  Result<> AwaitOther(std::stop_token stop);

 private:
  LockFile(UniqueFd fd, event::Inotify others) : fd_(std::move(fd)), others_(std::move(others)) {}
  UniqueFd fd_;
  event::Inotify others_;
};

}  // namespace keelson::kubelet
