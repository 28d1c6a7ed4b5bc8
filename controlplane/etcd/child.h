// A child process that cannot outlive the thread that started it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::etcd {

class Child {
 public:
  // Starts the program in `directory` and appends its stdout and stderr to `log_file`. The kernel kills the
  // child when the calling thread ends in any way (kill -9 of this process included), so that thread must
  // outlive it. The child has this process's environment but what sd_notify(3) reads.
  static Result<Child> Start(const std::vector<std::string>& arguments, const std::string& directory,
                             const std::string& log_file);

  Child(Child&&) = default;
  ~Child();  // kills and reaps

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the child has ended
  void Signal(int number);
  // Blocks until the child has ended, and reaps it. Returns "exited with 1", "killed by signal 9".
  std::string Wait();

 private:
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  UniqueFd pidfd_;
};

}  // namespace keelson::etcd
