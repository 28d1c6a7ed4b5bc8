#include "kubelet/image/backoff.h"

#include <algorithm>

namespace keelson::kubelet {

using std::chrono::milliseconds;

void Backoff::Learn(Entry& entry, WallTime since) const {
  if (entry.failure == since) return;
  auto passed = std::clamp<std::chrono::nanoseconds>(clock_.Now() - since, milliseconds(0), max_);
  entry.failure = since;
  entry.failed = clock_.SteadyNow() - passed;
}

milliseconds Backoff::Left(const std::string& key, WallTime since) {
  MutexLock lock(mutex_);
  auto it = entries_.find(key);
  if (it == entries_.end()) return milliseconds(0);
  Entry& entry = it->second;
  Learn(entry, since);
  if (entry.Quiet(entry.failed, quiet_)) return milliseconds(0);
  auto passed = std::chrono::duration_cast<milliseconds>(clock_.SteadyNow() - entry.failed);
  return std::max(milliseconds(0), entry.wait - passed);
}

milliseconds Backoff::Current(const std::string& key) const {
  MutexLock lock(mutex_);
  auto it = entries_.find(key);
  return it == entries_.end() ? milliseconds(0) : it->second.wait;
}

void Backoff::Next(const std::string& key, std::optional<WallTime> since) {
  MutexLock lock(mutex_);
  const SteadyTime now = clock_.SteadyNow();
  auto [it, fresh] = entries_.try_emplace(key, Entry{first_, now, std::nullopt, now});
  if (!fresh) {
    Entry& entry = it->second;
    if (since) Learn(entry, *since);
    const bool quiet = entry.Quiet(since ? entry.failed : now, quiet_);
    entry.wait = quiet ? first_ : std::min(entry.wait * 2, max_);
  }
  it->second.updated = now;
}

void Backoff::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  entries_.erase(key);
}

void Backoff::ForgetPrefix(const std::string& prefix) {
  MutexLock lock(mutex_);
  auto it = entries_.lower_bound(prefix);
  while (it != entries_.end() && it->first.compare(0, prefix.size(), prefix) == 0) it = entries_.erase(it);
}

}  // namespace keelson::kubelet
