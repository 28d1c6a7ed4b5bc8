// A cache with a TTL per entry. When it is full, it drops expired entries, else all entries.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

template <typename Value>
class ExpiringCache {  // thread safe
 public:
  explicit ExpiringCache(size_t capacity, Clock& clock) : capacity_(capacity), clock_(clock) {}

  std::optional<Value> Find(const std::string& key) KEELSON_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) return std::nullopt;
    if (it->second.until > clock_.Now()) return it->second.value;
    entries_.erase(it);
    return std::nullopt;
  }

  void Put(const std::string& key, Value value, std::chrono::milliseconds ttl) KEELSON_EXCLUDES(mutex_) {
    if (ttl.count() <= 0) return;
    MutexLock lock(mutex_);
    if (entries_.size() >= capacity_) {
      WallTime now = clock_.Now();
      for (auto it = entries_.begin(); it != entries_.end();) {
        it = it->second.until > now ? std::next(it) : entries_.erase(it);
      }
      if (entries_.size() >= capacity_) entries_.clear();
    }
    entries_.insert_or_assign(key, Entry{std::move(value), clock_.Now() + ttl});
  }

 private:
  struct Entry {
    Value value;
    WallTime until;
  };
  const size_t capacity_;
  Clock& clock_;
  Mutex mutex_;
  std::unordered_map<std::string, Entry> entries_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
