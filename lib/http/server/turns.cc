#include "lib/http/server/turns.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace keelson::http {

void Turns::Add(std::function<void()> delivery) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(delivery));
    if (std::exchange(posted_, true)) return;
  }
  Post();
}

void Turns::Post() {
  loop_.Post([self = shared_from_this()] { self->Take(); });
}

void Turns::Take() {
  std::vector<std::function<void()>> some;
  {
    MutexLock lock(mutex_);
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min(kAtATime, waiting_.size()));
    some.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
  }
  for (const auto& delivery : some) delivery();
  {
    MutexLock lock(mutex_);
    posted_ = !waiting_.empty();
    if (!posted_) return;
  }
  Post();
}

}  // namespace keelson::http
