// Threads for what waits for the API server: bindings, conditions.
#pragma once

#include <deque>
#include <functional>
#include <stop_token>

#include "lib/base/mutex.h"

namespace keelson::scheduler {

class Binders {  // thread safe
 public:
  void Submit(std::function<void()> task) {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    ready_.notify_one();
  }

  // Takes tasks until `stop`; what is left then is dropped. Any number of threads.
  void Run(std::stop_token stop) {
    for (;;) {
      std::function<void()> task;
      {
        MutexLock lock(mutex_);
        if (!ready_.wait(mutex_, stop, [this]() NO_THREAD_SAFETY_ANALYSIS { return !tasks_.empty(); }))
          return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

 private:
  Mutex mutex_;
  CondVar ready_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
