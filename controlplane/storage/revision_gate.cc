#include "controlplane/storage/revision_gate.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::storage {
namespace {

constexpr std::chrono::seconds kPatience{3};

}  // namespace

Result<int64_t> RevisionGate::Latest(const etcd::Limits& limits) {
  std::stop_callback on_stop(limits.stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  mutex_.lock();
  const uint64_t mine = asked_ + 1;
  while (answered_ < mine) {
    if (limits.stop.stop_requested() || std::chrono::steady_clock::now() >= limits.deadline) {
      mutex_.unlock();
      return Error(limits.stop.stop_requested() ? Code::kCancelled : Code::kTimeout,
                   "waiting for etcd's revision");
    }
    if (asking_) {
      changed_.wait_until(mutex_, std::min(limits.deadline, std::chrono::steady_clock::now() + kPatience));
      continue;
    }
    asking_ = true;
    const uint64_t question = ++asked_;
    mutex_.unlock();
    // Not this caller's own limits: others wait for the answer too.
    Result<int64_t> answer = client_.Revision({});
    mutex_.lock();
    answer_ = std::move(answer);
    answered_ = question;
    asking_ = false;
    changed_.notify_all();
  }
  Result<int64_t> answer = answer_;
  mutex_.unlock();
  return answer;
}

void RevisionGate::Reach(int64_t revision) {
  MutexLock lock(mutex_);
  reached_ = revision;
  changed_.notify_all();
}

int64_t RevisionGate::reached() const {
  MutexLock lock(mutex_);
  return reached_;
}

Result<> RevisionGate::Await(int64_t revision, const etcd::Limits& limits) {
  {
    MutexLock lock(mutex_);
    if (reached_ >= revision) return {};
  }
  std::stop_callback on_stop(limits.stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  SteadyTime deadline = std::min(limits.deadline, std::chrono::steady_clock::now() + kPatience);
  MutexLock lock(mutex_);
  while (reached_ < revision) {
    if (limits.stop.stop_requested()) return Error(Code::kCancelled, "waiting for a resource version");
    if (std::chrono::steady_clock::now() >= deadline) {
      ErrorDetails details;
      details.retry_after_seconds = 1;
      details.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
      return Error(Code::kTimeout,
                   fmt::format("Timeout: Too large resource version: {}, current: {}", revision, reached_))
          .WithDetails(std::move(details));
    }
    changed_.wait_until(mutex_, deadline);
  }
  return {};
}

}  // namespace keelson::storage
