#include "kubelet/workers/executor.h"

#include <algorithm>
#include <memory>

namespace keelson::kubelet {

namespace {
constexpr std::chrono::seconds kIdleLife(10);
}

Executor::Executor(size_t max_threads) : max_threads_(max_threads) {}

Executor::~Executor() {
  std::list<std::thread> ended;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    while (!idle_.empty()) WakeOne();
    while (!threads_.empty()) ended_.wait(mutex_);
    ended.swap(ended_threads_);
  }
  for (std::thread& thread : ended) thread.join();
}

void Executor::Submit(std::function<void()> task) {
  std::list<std::thread> ended;
  {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    ended.swap(ended_threads_);
    if (!idle_.empty()) {
      WakeOne();
    } else if (threads_.size() < max_threads_) {
      threads_.emplace_front();
      auto self = threads_.begin();
      *self = std::thread([this, self] { Loop(self); });
    }
  }
  for (std::thread& thread : ended) thread.join();
}

void Executor::RunAll(std::vector<std::function<void()>> tasks) {
  if (tasks.empty()) return;
  struct State {
    Mutex mutex;
    CondVar cv;
    size_t left;
  };
  auto state = std::make_shared<State>();
  state->left = tasks.size() - 1;
  for (size_t i = 1; i < tasks.size(); ++i) {
    Submit([task = std::move(tasks[i]), state] {
      task();
      MutexLock lock(state->mutex);
      if (--state->left == 0) state->cv.notify_all();
    });
  }
  tasks[0]();
  MutexLock lock(state->mutex);
  while (state->left > 0) state->cv.wait(state->mutex);
}

void Executor::WakeOne() {
  idle_.back()->called = true;
  idle_.back()->wake.notify_one();
  idle_.pop_back();
}

bool Executor::AwaitWork() {
  Idle self;
  idle_.push_back(&self);
  const auto deadline = std::chrono::steady_clock::now() + kIdleLife;
  while (!self.called && self.wake.wait_until(mutex_, deadline) != std::cv_status::timeout) {
  }
  if (!self.called) idle_.erase(std::find(idle_.begin(), idle_.end(), &self));
  return self.called;
}

void Executor::Loop(std::list<std::thread>::iterator self) {
  mutex_.lock();
  while (true) {
    if (tasks_.empty()) {
      if (stopping_ || !AwaitWork()) break;
      continue;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    mutex_.unlock();
    task();
    task = nullptr;  // what it holds goes before the next wait
    mutex_.lock();
  }
  ended_threads_.splice(ended_threads_.begin(), threads_, self);
  ended_.notify_all();
  mutex_.unlock();
}

}  // namespace keelson::kubelet
