// Sleep that a stop request ends, and back-off for clients whose server is down.
#pragma once

#include <chrono>
#include <random>
#include <stop_token>

#include "lib/base/clock.h"

namespace keelson::client {

// Waits for `duration`. False: `stop` was requested first.
bool SleepFor(Clock& clock, std::chrono::nanoseconds duration, std::stop_token stop);

// 0.8 s, doubled each time up to 30 s, plus a random part of up to the same length. Starts over after two
// minutes without a call. Not thread safe.
class ReconnectBackoff {
 public:
  explicit ReconnectBackoff(Clock& clock) : clock_(clock), random_(std::random_device{}()) {}
  std::chrono::nanoseconds Next();
  void Reset() { next_ = kFirst; }

 private:
  static constexpr std::chrono::milliseconds kFirst{800}, kMax{30'000};
  static constexpr std::chrono::minutes kForget{2};
  Clock& clock_;
  std::minstd_rand random_;
  std::chrono::milliseconds next_ = kFirst;
  SteadyTime last_{};
};

}  // namespace keelson::client
