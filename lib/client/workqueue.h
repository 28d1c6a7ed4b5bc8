// Rate-limited, deduplicating queue of keys, like client-go's workqueue. Only one worker has a key at a
// time; a key that is added again in the meantime is handed out once more after Done().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::client {

struct BackoffOptions {
  std::chrono::milliseconds base{5};
  std::chrono::milliseconds max{std::chrono::seconds(1000)};
};

class WorkQueue {  // thread safe
 public:
  explicit WorkQueue(std::string name, Clock& clock = Clock::Real(), BackoffOptions backoff = {});
  ~WorkQueue();

  void Add(std::string_view key);
  void AddAfter(std::string_view key, std::chrono::nanoseconds delay);  // the earliest of several delays wins
  void AddRateLimited(std::string_view key);                            // after base * 2^failures
  void Forget(std::string_view key);                                    // resets the failures to zero
  int Failures(std::string_view key) const;
  // Blocks for a key; nullopt on `stop`. Call Done() when the key has been handled.
  std::optional<std::string> Get(std::stop_token stop);
  void Done(std::string_view key);
  size_t size() const;  // ready keys
  const std::string& name() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The result of a reconcile: nothing more to do, or reconcile again after a delay.
struct Requeue {
  std::optional<std::chrono::nanoseconds> after;
};

// Runs up to `workers` threads, the caller's included, that take keys until `stop`. Logs an error once and
// retries the key with back-off.
void RunWorkers(
    WorkQueue& queue, int workers, std::stop_token stop,
    const std::function<Result<Requeue>(const std::string& key, std::stop_token stop)>& reconcile);

}  // namespace keelson::client
