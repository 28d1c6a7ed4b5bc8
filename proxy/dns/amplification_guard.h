// Bounds what a forged source address can bring upon its owner.
//
// A question by UDP says itself where it comes from. Answers of at most three times the question's size are
// of no use to a forger (RFC 9000, 8.1 draws the same line) and always given. Of larger ones each source is
// given kBytesPerSecond; those beyond are to be cut to nothing but TC, and whoever has really asked asks
// again by TCP. No client is ever left without an answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/clock.h"
#include "lib/base/ip.h"
#include "lib/base/mutex.h"

namespace keelson::proxy::dns {

// Thread safe.
class AmplificationGuard {
 public:
  static constexpr size_t kFactor = 3;
  static constexpr size_t kBytesPerSecond = 4 << 20;  // and as many at once after a second of silence

  explicit AmplificationGuard(Clock& clock);

  // Whether an answer of this size may go to `source`.
  bool Admit(const IpAddress& source, size_t question, size_t answer) {
    return answer <= kFactor * question || Charge(source, answer);
  }

 private:
  // A few sources share one, and nobody can say which: `seed_` is drawn at the start.
  struct Account {
    SteadyTime since{};
    size_t left = 0;
  };
  static constexpr size_t kAccounts = 1024;
  bool Charge(const IpAddress& source, size_t answer) KEELSON_EXCLUDES(mutex_);

  Clock& clock_;
  const size_t seed_;
  Mutex mutex_;
  std::array<Account, kAccounts> accounts_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::proxy::dns
