// How far the caches are, and how far etcd is: the two sides of a consistent read from the cache.
#pragma once

#include <cstdint>

#include "controlplane/etcd/client.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

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
  etcd::Client& client_;
  mutable Mutex mutex_;
  CondVar changed_;
  int64_t reached_ GUARDED_BY(mutex_) = 0;
  bool asking_ GUARDED_BY(mutex_) = false;
  uint64_t asked_ GUARDED_BY(mutex_) = 0, answered_ GUARDED_BY(mutex_) = 0;  // counts of questions
  Result<int64_t> answer_ GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::storage
