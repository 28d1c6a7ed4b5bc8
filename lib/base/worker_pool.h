// Threads that run tasks. The pool starts them on demand, up to a limit, and keeps them.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "lib/base/mutex.h"

namespace keelson {

class WorkerPool {  // thread safe
 public:
  explicit WorkerPool(int limit) : limit_(limit) {}
  ~WorkerPool() { Stop(); }

  // Queues a task. After Stop(): drops it and returns false.
  bool Submit(std::function<void()> task);
  // Drops tasks that have not started and waits for those that have.
  void Stop();

 private:
  void Work();
  const int limit_;
  Mutex mutex_;
  CondVar wake_;
  bool stopped_ KEELSON_GUARDED_BY(mutex_) = false;
  int idle_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::deque<std::function<void()>> tasks_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson
