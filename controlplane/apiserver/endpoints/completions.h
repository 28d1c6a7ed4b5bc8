// Callbacks of requests that end after their handler has returned: none runs once their owner has gone.
#pragma once

#include <functional>

#include "lib/base/mutex.h"

namespace keelson::apiserver {

class Completions {  // thread safe; shared with requests, which may outlive the owner
 public:
  // Runs `done`, unless Close() has been called.
  void Run(const std::function<void()>& done) {
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      ++running_;
    }
    done();
    MutexLock lock(mutex_);
    if (--running_ == 0) idle_.notify_all();
  }
  // Waits until no callback runs; later ones are dropped.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (running_ > 0) idle_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar idle_;
  int running_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool closed_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::apiserver
