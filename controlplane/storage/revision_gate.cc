#include "controlplane/storage/revision_gate.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::storage {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{3};

}  // namespace

Result<int64_t> RevisionGate::GetCurrentRevision(const etcd::Limits& limits) {
  mutex_.lock();
  if (!next_) next_ = std::make_shared<Request>();
  std::shared_ptr<Request> mine = next_;
  mutex_.unlock();
  std::stop_callback on_stop(limits.stop, [this, &mine] {
    MutexLock lock(mutex_);
    mine->changed.notify_all();
  });
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Join(*mine, limits));
  return *mine->answer;
}

// Waits for the pending request, or sends one.
Result<> RevisionGate::Join(Request& request, const etcd::Limits& limits) {
  while (!request.answer) {
    const bool stopped = limits.stop.stop_requested();
    if (stopped || steady_clock::now() >= limits.deadline) {
      // This caller may be the one that was woken to send it.
      if (!sending_) request.changed.notify_one();
      return Error(stopped ? Code::kCancelled : Code::kTimeout, "waiting for etcd's revision");
    }
    if (sending_) {
      request.changed.wait_until(mutex_, std::min(limits.deadline, steady_clock::now() + kPatience));
      continue;
    }
    sending_ = true;
    if (next_.get() == &request) next_.reset();
    mutex_.unlock();
    Result<int64_t> answer = client_.Revision(limits);
    mutex_.lock();
    sending_ = false;
    // A caller that is out of time leaves the request to the others. Timers may be a little early.
    constexpr std::chrono::milliseconds kEarly{10};
    const bool too_late = limits.stop.stop_requested() || steady_clock::now() + kEarly >= limits.deadline;
    if (answer || !too_late) request.answer = std::move(answer);
    request.changed.notify_all();
    if (next_) next_->changed.notify_one();
  }
  return {};
}

void RevisionGate::Advance(int64_t revision) {
  MutexLock lock(mutex_);
  reached_ = revision;
  for (auto waiter = waiting_.begin(); waiter != waiting_.end() && waiter->first <= revision; ++waiter) {
    waiter->second->notify_one();
  }
}

int64_t RevisionGate::reached() const {
  MutexLock lock(mutex_);
  return reached_;
}

Result<> RevisionGate::WaitUntilFresh(int64_t revision, const etcd::Limits& limits) {
  {
    MutexLock lock(mutex_);
    if (reached_ >= revision) return {};
  }
  CondVar changed;
  std::stop_callback on_stop(limits.stop, [this, &changed] {
    MutexLock lock(mutex_);
    changed.notify_one();
  });
  SteadyTime deadline = std::min(limits.deadline, steady_clock::now() + kPatience);
  MutexLock lock(mutex_);
  auto mine = waiting_.emplace(revision, &changed);
  Result<> outcome;
  while (reached_ < revision && outcome) {
    if (limits.stop.stop_requested()) {
      outcome = Error(Code::kCancelled, "waiting for a resource version");
    } else if (steady_clock::now() >= deadline) {
      ErrorDetails details;
      details.retry_after_seconds = 1;
      details.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
      outcome = Error(Code::kTimeout,
                      fmt::format("Timeout: Too large resource version: {}, current: {}", revision, reached_))
                    .WithDetails(std::move(details));
    } else {
      changed.wait_until(mutex_, deadline);
    }
  }
  waiting_.erase(mine);
  return outcome;
}

}  // namespace keelson::storage
