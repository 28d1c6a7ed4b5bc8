// Consistent reads from the cache: the revision of etcd, and the wait until the caches have reached it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "controlplane/etcd/client.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

// Wakes only the callers whose revision has been reached: thousands may wait at a time.
class RevisionGate {  // thread safe
 public:
  explicit RevisionGate(etcd::Client& client) : client_(client) {}

  // etcd's revision at some moment after this call began. Callers that come while a request is under way
  // share the next one, so that a thousand readers cost etcd little more than one. kTimeout, kCancelled or
  // etcd's error.
  Result<int64_t> GetCurrentRevision(const etcd::Limits& limits);

  // The caches have everything up to `revision`.
  void Advance(int64_t revision);
  int64_t reached() const;
  // Waits until the caches have reached `revision`. kTimeout with upstream's text after three seconds, or at
  // the end of `limits`.
  Result<> WaitUntilFresh(int64_t revision, const etcd::Limits& limits);

 private:
  struct Request {
    CondVar changed;  // it is answered, or one of its callers has to send it
    std::optional<Result<int64_t>> answer;
  };
  Result<> Join(Request& request, const etcd::Limits& limits) KEELSON_REQUIRES(mutex_);

  etcd::Client& client_;
  mutable Mutex mutex_;
  int64_t reached_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::multimap<int64_t, CondVar*> waiting_ KEELSON_GUARDED_BY(mutex_);  // by the revision waited for
  bool sending_ KEELSON_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Request> next_ KEELSON_GUARDED_BY(mutex_);  // not sent yet; may be null
};

}  // namespace keelson::storage
