// A thread pool for blocking work: it grows with the work, and idle threads end soon.
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
  ~Executor();  // waits for all submitted tasks

  // Runs the task on some thread; waits in a queue if max_threads are busy.
  void Submit(std::function<void()> task);
  // Runs all tasks in parallel, one of them on the calling thread, and returns when all have ended.
  void RunAll(std::vector<std::function<void()>> tasks);

 private:
  struct Idle {
    CondVar wake;
    bool called = false;
  };
  void Loop(std::list<std::thread>::iterator self);
  bool AwaitWork() KEELSON_REQUIRES(mutex_);  // false: none came
  void WakeOne() KEELSON_REQUIRES(mutex_);

  const size_t max_threads_;
  Mutex mutex_;
  CondVar ended_;
  std::deque<std::function<void()>> tasks_ KEELSON_GUARDED_BY(mutex_);
  std::list<std::thread> threads_ KEELSON_GUARDED_BY(mutex_);
  std::list<std::thread> ended_threads_ KEELSON_GUARDED_BY(mutex_);
  // The thread that has idled least is woken first, so that unneeded threads end.
  std::vector<Idle*> idle_ KEELSON_GUARDED_BY(mutex_);
  bool stopping_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
