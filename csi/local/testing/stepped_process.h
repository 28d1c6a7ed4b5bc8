// For tests: a program of many threads that is killed after a number of steps. A step is a system call of any thread that
// may change something outside of the process: a file, a mount, a loop device, a child process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace keelson::csi::local {

class SteppedProcess {
 public:
  // Runs the program with its output appended to a file. It runs freely until KillAfter().
  SteppedProcess(const std::vector<std::string>& argv, const std::string& output);
  ~SteppedProcess();  // kills it
  SteppedProcess(const SteppedProcess&) = delete;
  SteppedProcess& operator=(const SteppedProcess&) = delete;

  // Lets it do as many more steps, and kills it when the next one is done.
  void KillAfter(int steps) { left_ = steps; }

 private:
  void Trace(std::vector<std::string> argv, std::string output);
  bool Step(pid_t thread);

  std::atomic<int> left_{-1};
  std::atomic<bool> stop_{false};
  std::atomic<pid_t> pid_{0};
  std::thread tracer_;  // ptrace(2) belongs to one thread
};

}  // namespace keelson::csi::local
