// A child process, watched through a pidfd: no SIGCHLD handler, no thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::event {

struct ProcessOptions {
  std::vector<std::string> argv;                              // argv[0] is searched in PATH
  std::vector<std::pair<std::string, std::string>> env = {};  // added to this process's own
  std::string working_directory = {};                         // empty: this one's
  std::string output_file = {};  // stdout and stderr, appended; empty: this process's own
  std::string input = {};        // what it reads from stdin; empty: nothing
  int output_fd = -1;            // stdout alone, in place of output_file's
  bool die_with_parent = false;  // SIGKILL when the thread that called Start() ends (PR_SET_PDEATHSIG)
  bool new_process_group = false;
};

// How a process ended.
struct ExitStatus {
  int code = 0;    // when it exited
  int signal = 0;  // when a signal ended it
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exit code 1", "signal 9"
};

// Destroying a running process kills and reaps it. Use from one thread at a time; Signal() from any thread.
class Process {
 public:
  // Starts the program. A failed exec is reported here (kNotFound, ...).
  static Result<Process> Start(const ProcessOptions& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  // Blocks until the process ends; returns at once if it has ended. kTimeout after `timeout`, kCancelled on
  // `stop`.
  Result<ExitStatus> Wait(std::stop_token stop,
                          std::chrono::milliseconds timeout = std::chrono::milliseconds::max());
  Result<> Signal(int signal);
  // Sends SIGTERM, then SIGKILL after `grace`; returns when the process is gone.
  Result<ExitStatus> Terminate(std::chrono::milliseconds grace);

 private:
  Process(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void Reap();
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ExitStatus> exit_;
};

}  // namespace keelson::event
