// Leases that limit the lifetime of keys. All keys written within a minute share one lease, so that a burst
// of Events needs few; keys live a little longer than requested, never shorter.
#pragma once

#include <chrono>
#include <map>

#include "controlplane/etcd/client.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::etcd {

class LeasePool {
 public:
  LeasePool(Client& client, Clock& clock) : client_(client), clock_(clock) {}

  // A lease that lasts at least `ttl`; granted by etcd if no shared one fits.
  Result<int64_t> LeaseFor(std::chrono::seconds ttl, const Limits& limits);

 private:
  struct Lease {
    int64_t id = 0;
    SteadyTime reuse_until;
    int uses = 0;
  };
  Client& client_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::chrono::seconds, Lease> leases_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::etcd
