// A message body on its way from one connection to another: one side adds pieces as they arrive, the other takes them.
// It holds a bounded number of bytes, because its writer stops when it is told that the reader is behind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::http {

// Thread safe. Callbacks run on the thread of the call that causes them, must not block, and may be replaced by null.
class BodyStream {
 public:
  // More bytes than these, and the writer waits for the reader.
  static constexpr size_t kHighWater = 256 << 10;

  // ---- writer ----
  // Returns true when the reader is behind: the writer then adds no more until `taken` was called. Bytes after an
  // Abandon() go nowhere.
  bool Write(std::string_view bytes);
  void Finish();
  // The body ends early: its sender is gone. The first of Finish() and Fail() counts.
  void Fail(Error error);
  // Calls `taken` with the number of bytes each time that bytes leave the stream.
  void OnTaken(std::function<void(size_t)> taken);

  // ---- reader ----
  struct Batch {
    std::vector<std::shared_ptr<const std::string>> pieces;
    bool finished = false;         // nothing follows
    std::optional<Error> failure;  // nothing follows, and the body is not whole
  };
  Batch Take();
  // Calls `readable` when there is something to take, maybe within this call, once too often, or on two threads at a time.
  void OnReadable(std::function<void()> readable);
  // The reader needs no more.
  void Abandon();
  bool touched() const;  // Take() has been called: the body cannot be sent a second time

 private:
  void Tell() KEELSON_EXCLUDES(mutex_);
  mutable Mutex mutex_;
  Batch batch_ KEELSON_GUARDED_BY(mutex_);
  size_t size_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool abandoned_ KEELSON_GUARDED_BY(mutex_) = false, touched_ KEELSON_GUARDED_BY(mutex_) = false;
  std::function<void(size_t)> taken_ KEELSON_GUARDED_BY(mutex_);
  std::function<void()> readable_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::http
