#include "proxy/dns/amplification_guard.h"

#include <algorithm>
#include <random>

namespace keelson::proxy::dns {
namespace {

// The bits of a product that depend on all bits of both factors are its upper ones.
size_t Mix(size_t hash, size_t seed) { return ((hash ^ seed) * 0x9E3779B97F4A7C15u) >> 32; }

}  // namespace

AmplificationGuard::AmplificationGuard(Clock& clock)
    : clock_(clock), seed_(std::random_device{}() | static_cast<size_t>(std::random_device{}()) << 32) {
  MutexLock lock(mutex_);
  accounts_.fill({clock.SteadyNow(), kBytesPerSecond});
}

bool AmplificationGuard::Charge(const IpAddress& source, size_t answer) {
  SteadyTime now = clock_.SteadyNow();
  MutexLock lock(mutex_);
  Account& account = accounts_[Mix(std::hash<IpAddress>()(source), seed_) % kAccounts];
  double seconds = std::min(1.0, std::chrono::duration<double>(now - account.since).count());
  account.left = std::min(kBytesPerSecond, account.left + static_cast<size_t>(seconds * kBytesPerSecond));
  account.since = now;
  if (account.left < answer) return false;
  account.left -= answer;
  return true;
}

}  // namespace keelson::proxy::dns
