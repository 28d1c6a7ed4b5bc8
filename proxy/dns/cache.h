// Answers of other servers by question, with a limit of memory; evicts the least recently used ones.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <unordered_map>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/metrics/metrics.h"
#include "proxy/dns/message/stored_answer.h"

namespace keelson::proxy::dns {

struct CacheOptions {
  size_t max_bytes = 8 << 20;
  std::chrono::seconds max_ttl = std::chrono::hours(1);
  std::chrono::seconds max_negative_ttl = std::chrono::minutes(30);
  std::chrono::seconds stale_for = std::chrono::hours(1);  // beyond the TTL (RFC 8767)
};

// Thread safe.
class Cache {
 public:
  Cache(CacheOptions options, Clock& clock);

  struct Hit {
    std::shared_ptr<const StoredAnswer> answer;  // null: none
    std::chrono::seconds age{0};
  };
  Hit Find(const Question& question);
  // The same, and also answers beyond their TTL.
  Hit FindStale(const Question& question);
  // Ignores answers that must not be cached, or whose TTL is 0.
  void Put(const Question& question, std::shared_ptr<const StoredAnswer> answer);
  size_t bytes() const;

 private:
  struct Entry {
    Question question;
    std::shared_ptr<const StoredAnswer> answer;
    SteadyTime since;
    std::chrono::seconds ttl;
  };
  using Entries = std::list<Entry>;

  static size_t Cost(const Entry& entry);
  void Remove(Entries::iterator entry) KEELSON_REQUIRES(mutex_);
  Entries::iterator Use(const Question& question) KEELSON_REQUIRES(mutex_);

  const CacheOptions options_;
  Clock& clock_;
  metrics::Value *requests_, *hits_[2], *misses_, *stale_, *count_[2];  // by negative
  mutable Mutex mutex_;
  Entries entries_ KEELSON_GUARDED_BY(mutex_);  // last used first
  std::unordered_map<Question, Entries::iterator, QuestionHash> index_ KEELSON_GUARDED_BY(mutex_);
  size_t bytes_ KEELSON_GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::proxy::dns
