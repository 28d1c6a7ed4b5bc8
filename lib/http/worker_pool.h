// Threads that run handlers. They are made as work comes, up to a limit, and kept. Internal to lib/http.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "lib/base/mutex.h"

namespace keelson::http {

class WorkerPool {  // thread safe
 public:
  explicit WorkerPool(int limit) : limit_(limit) {}
  ~WorkerPool() { Stop(); }

  // False, and `task` is dropped, after Stop().
  bool Submit(std::function<void()> task);
  // Drops what has not begun and waits for what has.
  void Stop();

 private:
  void Work();
  const int limit_;
  Mutex mutex_;
  CondVar wake_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  int idle_ GUARDED_BY(mutex_) = 0;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace keelson::http
