#include "proxy/dns/cache.h"

#include <algorithm>

#include "proxy/dns/dns_metrics.h"

namespace keelson::proxy::dns {
namespace {

using std::chrono::duration_cast;
using std::chrono::seconds;

constexpr size_t kOverhead = 128;  // list and map nodes

}  // namespace

Cache::Cache(CacheOptions options, Clock& clock) : options_(options), clock_(clock) {
  const std::vector<std::string> labels = {"server", "view", "zones"},
                                 typed = {"server", "type", "view", "zones"};
  const std::vector<std::string> values = {kServerLabel, "", kZoneLabel};
  requests_ =
      &metrics::Counter("coredns_cache_requests_total", "The count of cache requests.", labels).With(values);
  misses_ =
      &metrics::Counter("coredns_cache_misses_total", "The count of cache misses.", labels).With(values);
  stale_ = &metrics::Counter("coredns_cache_served_stale_total",
                             "The number of requests served from stale cache entries.", labels)
                .With(values);
  auto& hits = metrics::Counter("coredns_cache_hits_total", "The count of cache hits.", typed);
  auto& entries = metrics::Gauge("coredns_cache_entries", "The number of elements in the cache.", typed);
  for (int negative = 0; negative < 2; ++negative) {
    const std::vector<std::string> of = {kServerLabel, negative ? "denial" : "success", "", kZoneLabel};
    hits_[negative] = &hits.With(of);
    count_[negative] = &entries.With(of);
  }
}

size_t Cache::Cost(const Entry& entry) {
  return sizeof(Entry) + kOverhead + 2 * entry.question.name.size() + entry.answer->size();
}

void Cache::Remove(Entries::iterator entry) {
  bytes_ -= Cost(*entry);
  count_[entry->answer->negative]->Add(-1);
  index_.erase(entry->question);
  entries_.erase(entry);
}

// The entry, which is the last used one now; end() when there is none that may be used at all.
Cache::Entries::iterator Cache::Use(const Question& question) {
  auto found = index_.find(question);
  if (found == index_.end()) return entries_.end();
  Entries::iterator entry = found->second;
  if (clock_.SteadyNow() - entry->since >= entry->ttl + options_.stale_for) {
    Remove(entry);
    return entries_.end();
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return entry;
}

Cache::Hit Cache::Find(const Question& question) {
  requests_->Increment();
  MutexLock lock(mutex_);
  auto entry = Use(question);
  if (entry != entries_.end()) {
    auto age = clock_.SteadyNow() - entry->since;
    if (age < entry->ttl) {
      hits_[entry->answer->negative]->Increment();
      return {entry->answer, duration_cast<seconds>(age)};
    }
  }
  misses_->Increment();
  return {};
}

Cache::Hit Cache::FindStale(const Question& question) {
  MutexLock lock(mutex_);
  auto entry = Use(question);
  if (entry == entries_.end()) return {};
  stale_->Increment();
  return {entry->answer, duration_cast<seconds>(clock_.SteadyNow() - entry->since)};
}

void Cache::Put(const Question& question, std::shared_ptr<const StoredAnswer> answer) {
  seconds ttl = std::min(answer->ttl, answer->negative ? options_.max_negative_ttl : options_.max_ttl);
  if (!answer->cacheable || ttl <= seconds(0)) return;
  MutexLock lock(mutex_);
  if (auto found = index_.find(question); found != index_.end()) Remove(found->second);
  entries_.push_front({question, std::move(answer), clock_.SteadyNow(), ttl});
  index_[question] = entries_.begin();
  bytes_ += Cost(entries_.front());
  count_[entries_.front().answer->negative]->Add(1);
  while (bytes_ > options_.max_bytes && !entries_.empty()) Remove(std::prev(entries_.end()));
}

size_t Cache::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace keelson::proxy::dns
