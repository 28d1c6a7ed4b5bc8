// What keeps a server that is asked for too much answering: deadlines, and limits of what is under way.
#pragma once

#include <atomic>
#include <chrono>

#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

struct RequestLimits {
  std::chrono::milliseconds timeout{60000};  // of requests that are no streams; ?timeout= makes it shorter
  std::chrono::seconds min_watch_timeout{1800};  // of watches that say nothing of their end
  bool priority_and_fairness = true;
  int seats = 600;  // that priority levels share
  // Without priority and fairness; 0: any number. With it their sum is what `seats` would be if there were
  // threads for all.
  int max_read_only = 400, max_mutating = 200;
};

// Sets the request's deadline. kBadRequest: ?timeout= is no duration.
Result<> SetDeadline(Context& context, std::chrono::milliseconds most);

// Refuses with 429; the client may come back in a second.
void ReplyTooManyRequests(Context& context);

// Counts requests under way. Thread safe.
class InflightLimit {
 public:
  explicit InflightLimit(int most) : most_(most) {}
  bool Enter() {
    if (count_.fetch_add(1) < most_ || most_ <= 0) return true;
    count_.fetch_sub(1);
    return false;
  }
  void Leave() { count_.fetch_sub(1); }

 private:
  const int most_;
  std::atomic<int> count_{0};
};

}  // namespace keelson::apiserver
