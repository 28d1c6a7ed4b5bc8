// One I/O thread that runs tasks, timers and descriptor callbacks, one after another. None of them may
// block.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace keelson::event {

// Destroying a loop drops the tasks that have not run. Its thread blocks all signals.
class Loop {
 public:
  static std::shared_ptr<Loop> Create(const std::string& thread_name);
  // The loop that all clients in this process share. It lives as long as someone holds a reference.
  static std::shared_ptr<Loop> Shared();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Post(std::function<void()> task);  // thread safe; never runs `task` inside the call
  bool OnLoopThread() const;              // thread safe

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Loop(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Declare one first thing in main(). Its destructor waits until the threads of all loops have finished
// their queued tasks and ended. A loop whose last owner is one of its own tasks ends by itself, and would
// otherwise still run while exit() destroys static objects, OpenSSL's among them. Loops made or used
// afterwards do nothing.
class LoopsOfProcess {
 public:
  LoopsOfProcess() = default;
  ~LoopsOfProcess();
  LoopsOfProcess(const LoopsOfProcess&) = delete;
  LoopsOfProcess& operator=(const LoopsOfProcess&) = delete;
};

// Timer and FdWatch are used on the loop's thread only, destruction included. After Cancel() or destruction
// no callback runs.

class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  void Start(std::chrono::nanoseconds after, std::function<void()> callback);  // replaces an earlier start
  void Cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Waits until a descriptor is ready. The caller owns the descriptor and keeps it open until the watch is
// gone. Each Await call waits once.
class FdWatch {
 public:
  FdWatch(Loop& loop, int fd);
  ~FdWatch();
  void AwaitReadable(std::function<void()> callback);
  void AwaitWritable(std::function<void()> callback);
  void Cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace keelson::event
