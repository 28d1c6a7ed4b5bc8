// One kubelet at a time: whoever holds the lock on a file (flock(2)) runs, others wait for it.
#pragma once

#include <stop_token>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/event/inotify.h"

namespace keelson::kubelet {

class LockFile {
 public:
  // Makes the file where it is not there, and waits until nobody else holds the lock, which is held until the
  // end of this object.
  static Result<LockFile> Take(const std::string& path);

  // Returns when somebody else has opened the file since Take(), or removed it: another kubelet is to run
  // here.
  Result<> AwaitOther(std::stop_token stop);

 private:
  LockFile(UniqueFd fd, event::Inotify others) : fd_(std::move(fd)), others_(std::move(others)) {}
  UniqueFd fd_;
  event::Inotify others_;
};

}  // namespace keelson::kubelet
