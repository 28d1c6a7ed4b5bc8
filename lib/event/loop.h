// One I/O thread: tasks, timers and descriptor readiness, run one after another. Nothing on it may block.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace keelson::event {

// Tasks that have not run when the loop is destroyed are dropped. The thread blocks all signals.
class Loop {
 public:
  static std::shared_ptr<Loop> Create(const std::string& thread_name);
  // The loop that clients of this process share; it lives as long as someone holds it.
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

// What a program's main() begins with: when it returns, the threads of all loops have done what was queued
// and ended. A loop whose last owner is a task of its own ends by itself, and would else be at work while
// exit() takes static objects apart, OpenSSL's among them. Loops made or used afterwards do nothing.
class LoopsOfProcess {
 public:
  LoopsOfProcess() = default;
  ~LoopsOfProcess();
  LoopsOfProcess(const LoopsOfProcess&) = delete;
  LoopsOfProcess& operator=(const LoopsOfProcess&) = delete;
};

// Everything below is used on the loop's thread only, destruction included. After Cancel() or destruction
// no callback runs any more.

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

// Waits for readiness of a descriptor that somebody else owns and keeps open until the watch is gone.
// Each call waits once.
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
