// Threads for what waits for the API server: bindings, evictions, conditions.
#pragma once

#include <deque>
#include <functional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "lib/base/mutex.h"

namespace keelson::scheduler {

class Binders {  // thread safe
 public:
  // Tasks of one key run one after another: a pod's old condition must not be written after its binding.
  void Submit(const std::string& key, std::function<void()> task) {
    MutexLock lock(mutex_);
    const auto [chain, idle] = chains_.try_emplace(key);
    if (!idle) {
      chain->second.push_back(std::move(task));
      return;
    }
    tasks_.push_back({key, std::move(task)});
    ready_.notify_one();
  }

  // Takes tasks until `stop`; what is left then is dropped. Any number of threads.
  void Run(std::stop_token stop) {
    for (;;) {
      Task task;
      {
        MutexLock lock(mutex_);
        if (!ready_.wait(mutex_, stop, [this]() NO_THREAD_SAFETY_ANALYSIS { return !tasks_.empty(); }))
          return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task.run();
      MutexLock lock(mutex_);
      const auto chain = chains_.find(task.key);
      if (chain->second.empty()) {
        chains_.erase(chain);
        continue;
      }
      tasks_.push_back({task.key, std::move(chain->second.front())});
      chain->second.pop_front();
      ready_.notify_one();
    }
  }

 private:
  struct Task {
    std::string key;
    std::function<void()> run;
  };

  Mutex mutex_;
  CondVar ready_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  // Of keys that have a task waiting in tasks_ or running: what comes after it.
  std::unordered_map<std::string, std::deque<std::function<void()>>> chains_ GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
