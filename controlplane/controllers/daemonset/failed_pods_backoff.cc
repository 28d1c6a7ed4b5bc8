#include "controlplane/controllers/daemonset/failed_pods_backoff.h"

#include <algorithm>

namespace keelson::controllers {
namespace {

constexpr std::chrono::seconds kFirst(1);
constexpr std::chrono::minutes kLongest(15);

}  // namespace

std::optional<std::chrono::nanoseconds> FailedPodsBackoff::Replace(const std::string& key) {
  const SteadyTime now = clock_.SteadyNow();
  MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return now - entry.second.last > 2 * kLongest; });
  auto [it, fresh] = entries_.try_emplace(key, Entry{kFirst, now});
  if (fresh) return std::nullopt;
  Entry& entry = it->second;
  if (now - entry.last < entry.delay) return entry.last + entry.delay - now;
  entry = {std::min<std::chrono::nanoseconds>(2 * entry.delay, kLongest), now};
  return std::nullopt;
}

}  // namespace keelson::controllers
