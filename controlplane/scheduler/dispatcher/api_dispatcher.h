// Runs calls to the API server beside the scheduling thread: binding cycles, preemption, pod statuses.
#pragma once

#include <deque>
#include <functional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "lib/base/mutex.h"

namespace keelson::scheduler {

class ApiDispatcher {  // thread safe
 public:
  // Queues `call`, which may block, for one of the threads in Run(). Calls of one key run one after another,
  // in order: a pod's old condition must not be written after its binding.
  void Submit(const std::string& key, std::function<void()> call) {
    MutexLock lock(mutex_);
    const auto [pending, idle] = pending_.try_emplace(key);
    if (!idle) {
      pending->second.push_back(std::move(call));
      return;
    }
    calls_.push_back({key, std::move(call)});
    ready_.notify_one();
  }

  // Runs calls until `stop`; calls that have not begun by then are dropped. Any number of threads may be in
  // here.
  void Run(std::stop_token stop) {
    for (;;) {
      Call call;
      {
        MutexLock lock(mutex_);
        if (!ready_.wait(mutex_, stop,
                         [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return !calls_.empty(); })) {
          return;
        }
        call = std::move(calls_.front());
        calls_.pop_front();
      }
      call.run();
      MutexLock lock(mutex_);
      const auto pending = pending_.find(call.key);
      if (pending->second.empty()) {
        pending_.erase(pending);
        continue;
      }
      calls_.push_back({call.key, std::move(pending->second.front())});
      pending->second.pop_front();
      ready_.notify_one();
    }
  }

 private:
  struct Call {
    std::string key;
    std::function<void()> run;
  };

  Mutex mutex_;
  CondVar ready_;
  std::deque<Call> calls_ KEELSON_GUARDED_BY(mutex_);  // at most one a key
  // Has every key with a call in calls_ or running; the value is the calls after it.
  std::unordered_map<std::string, std::deque<std::function<void()>>> pending_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
