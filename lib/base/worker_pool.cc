#include "lib/base/worker_pool.h"

#include <pthread.h>

namespace keelson {

bool WorkerPool::Submit(std::function<void()> task) {
  MutexLock lock(mutex_);
  if (stopped_) return false;
  tasks_.push_back(std::move(task));
  if (static_cast<size_t>(idle_) < tasks_.size() && threads_.size() < static_cast<size_t>(limit_)) {
    threads_.emplace_back([this] { Work(); });
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::Work() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  pthread_setname_np(pthread_self(), "http-worker");
  mutex_.lock();
  for (;;) {
    ++idle_;
    while (tasks_.empty() && !stopped_) wake_.wait(mutex_);
    --idle_;
    if (stopped_) break;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    mutex_.unlock();
    task();
    task = nullptr;  // destroy it without the lock
    mutex_.lock();
  }
  mutex_.unlock();
}

void WorkerPool::Stop() {
  std::vector<std::thread> threads;
  std::deque<std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
    dropped.swap(tasks_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace keelson
