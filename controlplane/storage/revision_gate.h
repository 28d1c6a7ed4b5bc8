// How far the caches are, and how far etcd is: the two sides of a consistent read from the cache.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "controlplane/etcd/client.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

// Each wakes those alone who wait for what has come: thousands may wait at a time.
class RevisionGate {
 public:
  explicit RevisionGate(etcd::Client& client) : client_(client) {}

  // etcd's revision at some moment after this call began. Callers that come while a question is under way
  // share the next one, so that a thousand readers cost etcd little more than one.
  Result<int64_t> Latest(const etcd::Limits& limits);

  void Reach(int64_t revision);  // the caches hold everything up to there
  int64_t reached() const;
  // kTimeout in upstream's words when that takes longer than `limits` or three seconds.
  Result<> Await(int64_t revision, const etcd::Limits& limits);

 private:
  struct Question {
    CondVar changed;  // answered, or nobody asks and one of those who wait has to
    std::optional<Result<int64_t>> answer;
  };
  Result<> Join(Question& question, const etcd::Limits& limits) REQUIRES(mutex_);

  etcd::Client& client_;
  mutable Mutex mutex_;
  int64_t reached_ GUARDED_BY(mutex_) = 0;
  std::multimap<int64_t, CondVar*> waiting_ GUARDED_BY(mutex_);  // by the revision waited for
  bool asking_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<Question> next_ GUARDED_BY(mutex_);  // to be asked; may be null
};

}  // namespace keelson::storage
