#include "lib/http/body_stream.h"

#include <utility>

namespace keelson::http {

bool BodyStream::Write(std::string_view bytes) {
  if (bytes.empty()) return false;
  bool behind = false;
  std::function<void(size_t)> dropped;
  {
    MutexLock lock(mutex_);
    if (abandoned_) {
      dropped = taken_;
    } else {
      batch_.pieces.push_back(std::make_shared<const std::string>(bytes));
      size_ += bytes.size();
      behind = size_ > kHighWater;
    }
  }
  if (dropped) dropped(bytes.size());
  Tell();
  return behind;
}

void BodyStream::Finish() {
  {
    MutexLock lock(mutex_);
    if (batch_.failure) return;
    batch_.finished = true;
  }
  Tell();
}

void BodyStream::Fail(Error error) {
  {
    MutexLock lock(mutex_);
    if (batch_.finished || batch_.failure) return;
    batch_.failure = std::move(error);
  }
  Tell();
}

void BodyStream::Tell() {
  std::function<void()> readable;
  {
    MutexLock lock(mutex_);
    readable = readable_;
  }
  if (readable) readable();
}

void BodyStream::OnTaken(std::function<void(size_t)> taken) {
  MutexLock lock(mutex_);
  taken_ = std::move(taken);
}

BodyStream::Batch BodyStream::Take() {
  Batch out;
  size_t size = 0;
  std::function<void(size_t)> taken;
  {
    MutexLock lock(mutex_);
    touched_ = true;
    out = batch_;
    batch_.pieces.clear();
    size = std::exchange(size_, 0);
    taken = taken_;
  }
  if (size > 0 && taken) taken(size);
  return out;
}

void BodyStream::OnReadable(std::function<void()> readable) {
  bool already = false;
  {
    MutexLock lock(mutex_);
    readable_ = std::move(readable);
    already = size_ > 0 || batch_.finished || batch_.failure;
  }
  if (already) Tell();
}

void BodyStream::Abandon() {
  {
    MutexLock lock(mutex_);
    abandoned_ = true;
    readable_ = nullptr;
  }
  (void)Take();
}

bool BodyStream::touched() const {
  MutexLock lock(mutex_);
  return touched_;
}

}  // namespace keelson::http
