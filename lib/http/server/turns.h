// Deliveries of responses that go on (watches, logs) on one loop: a few at a time. Between them the loop looks at its sockets
// and sends whole responses, so that thousands of streams that have something to send at once do not hold up requests.
// Internal to lib/http/server.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "lib/base/mutex.h"
#include "lib/event/loop.h"

namespace keelson::http {

class Turns : public std::enable_shared_from_this<Turns> {  // thread safe
 public:
  // `loop` outlives calls of Add().
  explicit Turns(event::Loop& loop) : loop_(loop) {}

  // Runs the delivery on the loop, after those that were added before. It holds no reference to its connection.
  void Add(std::function<void()> delivery);

 private:
  static constexpr size_t kAtATime = 16;
  void Post();
  void Take();

  event::Loop& loop_;
  Mutex mutex_;
  bool posted_ KEELSON_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> waiting_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::http
