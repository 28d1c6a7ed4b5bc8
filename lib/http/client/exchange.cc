#include "lib/http/client/exchange.h"

#include <algorithm>
#include <utility>

namespace keelson::http {
namespace {
constexpr size_t kReadAhead = 256 << 10;
}

void Exchange::End() {
  over_ = true;
  timer_.reset();
  sink_.reset();
  if (request.body_stream) request.body_stream->Abandon();
}

void Exchange::FailAfter(std::chrono::milliseconds timeout) {
  if (over_) return;
  timer_ = std::make_unique<event::Timer>(*loop);
  timer_->Start(timeout, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self || self->over_) return;
    if (auto held = self->carrier.lock()) held->Abort(*self);
    self->OnFail(Error(Code::kTimeout, self->request.method + " " + self->request.target + ": timed out"));
  });
}

void Exchange::OnHead(int status, Headers headers) {
  if (over_) return;
  head_seen_ = true;
  if (sink_) return std::shared_ptr(sink_)->OnHead(status_ = status, headers);
  MutexLock lock(mutex_);
  status_ = status;
  headers_ = std::move(headers);
  head_ = true;
  changed_.notify_all();
}

bool Exchange::OnBody(std::string_view bytes) {
  if (over_) return false;
  if (sink_) return std::shared_ptr(sink_)->OnBody(bytes);
  if (!streaming && TooLong(bytes.size())) return false;
  bool behind = false;
  {
    MutexLock lock(mutex_);
    body_ += bytes;
    if (!streaming) return false;
    changed_.notify_all();
    behind = behind_ = body_.size() >= kReadAhead;
  }
  TellReader();
  return behind;
}

// Ends an exchange whose response is too long with these bytes.
bool Exchange::TooLong(size_t more) {
  {
    MutexLock lock(mutex_);
    if (body_.size() + more <= request.max_response_body) return false;
  }
  OnFail(Error(Code::kTooLarge,
               "the response is longer than " + std::to_string(request.max_response_body) + " bytes"));
  // The connection is in the middle of calling us.
  loop->Post([self = shared_from_this()] {
    if (auto held = self->carrier.lock()) held->Abort(*self);
  });
  return true;
}

void Exchange::OnUpgraded(std::shared_ptr<StreamCore> stream) {
  if (over_) return stream->Close(true);
  auto sink = sink_;
  End();
  if (sink) return sink->OnUpgraded(MakeStream(std::move(stream)));
  MutexLock lock(mutex_);
  stream_ = std::move(stream);
  ended_ = true;
  changed_.notify_all();
}

void Exchange::OnEnd() {
  if (over_) return;
  auto sink = sink_;
  End();
  if (sink) return sink->OnEnd();
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  TellReader();
}

void Exchange::OnFail(Error error) {
  if (over_) return;
  auto sink = sink_;
  End();
  if (sink) return sink->OnFail(error);
  {
    MutexLock lock(mutex_);
    failure_ = std::move(error);
    changed_.notify_all();
  }
  TellReader();
}

void Exchange::TellReader() {
  std::function<void()> readable;
  {
    MutexLock lock(mutex_);
    readable = readable_;
  }
  if (readable) readable();
}

void Exchange::OnReadable(std::function<void()> readable) {
  bool already = false;
  {
    MutexLock lock(mutex_);
    readable_ = std::move(readable);
    already = readable_ && (!body_.empty() || ended_ || failure_);
  }
  if (already) TellReader();
}

Exchange::Deadline Exchange::DeadlineIn(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);
  return std::chrono::steady_clock::now() + std::min(timeout, kForever);
}

Result<> Exchange::Await(Deadline deadline, std::stop_token stop,
                         const std::function<bool()>& ready) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, stop, deadline,
                      [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return failure_ || ready(); });
  if (ready()) return {};
  if (failure_) return *failure_;
  std::string what = request.method + " " + request.target;
  if (stop.stop_requested()) return Error(Code::kCancelled, what + ": cancelled");
  return Error(Code::kTimeout, what + ": timed out");
}

Result<> Exchange::AwaitHead(Deadline deadline, std::stop_token stop) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  Result<> result =
      Await(deadline, std::move(stop), [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return head_; });
  if (!result) GiveUp();
  return result;
}

Result<> Exchange::AwaitEnd(Deadline deadline, std::stop_token stop) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  Result<> result =
      Await(deadline, std::move(stop), [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return ended_; });
  if (!result) GiveUp();
  return result;
}

Result<std::string> Exchange::Read(std::stop_token stop,
                                   std::chrono::milliseconds idle) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  KEELSON_RETURN_IF_ERROR(Await(DeadlineIn(idle), std::move(stop),
                                [this]()
                                    KEELSON_NO_THREAD_SAFETY_ANALYSIS { return !body_.empty() || ended_; }));
  std::string piece;
  bool was_behind;
  {
    MutexLock lock(mutex_);
    piece = std::exchange(body_, {});
    was_behind = std::exchange(behind_, false);
  }
  if (was_behind) {
    loop->Post([self = shared_from_this(), size = piece.size()] {
      if (auto held = self->carrier.lock()) held->Resume(*self, size);
    });
  }
  return piece;
}

void Exchange::GiveUp() {
  loop->Post([self = shared_from_this()] {
    if (self->over_) {
      // The upgrade came after the caller had stopped waiting.
      if (auto stream = self->TakeStream()) stream->Close(true);
      return;
    }
    self->End();
    if (auto held = self->carrier.lock()) held->Abort(*self);
  });
}

void Exchange::Resume() {
  loop->Post([self = shared_from_this()] {
    if (auto held = self->carrier.lock(); held && !self->over_) held->Resume(*self, 0);
  });
}

std::shared_ptr<StreamCore> Exchange::TakeStream() {
  MutexLock lock(mutex_);
  return std::exchange(stream_, nullptr);
}

}  // namespace keelson::http
