// Limits the traffic that a forged source address can direct at the owner of that address.
//
// The source of a UDP query is not verified. Answers of at most three times the query's size are useless for
// amplification (RFC 9000, 8.1 has the same limit) and always sent. Larger answers have a budget of kBytesPerSecond
// for each source; beyond it the server sends an empty answer with TC, and a real client asks again by TCP. Every
// client gets an answer.
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
  static constexpr size_t kBytesPerSecond = 4 << 20;  // also the burst after a second of silence

  explicit AmplificationGuard(Clock& clock);

  // Whether an answer of this size may be sent to `source`.
  bool Admit(const IpAddress& source, size_t question, size_t answer) {
    return answer <= kFactor * question || Charge(source, answer);
  }

 private:
  // A few sources share a budget. An attacker cannot predict which: `seed_` is random.
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
