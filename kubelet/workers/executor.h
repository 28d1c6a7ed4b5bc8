// Threads for work that blocks: as many as there is work, none kept for long without any.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <thread>
#include <vector>

#include "lib/base/mutex.h"

namespace keelson::kubelet {

class Executor {  // thread safe
 public:
  explicit Executor(size_t max_threads = 512);
  ~Executor();  // waits for all that was submitted

  void Submit(std::function<void()> task);
  // Runs all tasks side by side, one of them on the calling thread, and returns when the last has ended.
  void RunAll(std::vector<std::function<void()>> tasks);

 private:
  struct Idle {
    CondVar wake;
    bool called = false;
  };
  void Loop(std::list<std::thread>::iterator self);
  bool AwaitWork() REQUIRES(mutex_);  // false: none came
  void WakeOne() REQUIRES(mutex_);

  const size_t max_threads_;
  Mutex mutex_;
  CondVar ended_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::list<std::thread> threads_ GUARDED_BY(mutex_);
  std::list<std::thread> ended_threads_ GUARDED_BY(mutex_);
  // The one that has idled least is woken first, so that threads nobody needs any more come to their end.
  std::vector<Idle*> idle_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
