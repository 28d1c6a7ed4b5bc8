// Overload protection: request deadlines and in-flight limits.
#pragma once

#include <atomic>
#include <chrono>

#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

struct RequestLimits {
  std::chrono::milliseconds timeout{60000};      // of non-streaming requests; ?timeout= can shorten it
  std::chrono::seconds min_watch_timeout{1800};  // of watches without timeoutSeconds
  bool priority_and_fairness = true;
  int seats = 600;  // shared by all priority levels
  // In-flight limits without priority and fairness; 0: unlimited. Upstream's total seats are their sum.
  int max_read_only = 400, max_mutating = 200;
};

// Sets the request's deadline. kBadRequest when ?timeout= is not a duration.
Result<> SetDeadline(Context& context, std::chrono::milliseconds most);

// Responds 429 with Retry-After: 1.
void ReplyTooManyRequests(Context& context);

// Limits the requests in flight. Thread safe.
class MaxInFlightLimit {
 public:
  explicit MaxInFlightLimit(int most) : most_(most) {}
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
