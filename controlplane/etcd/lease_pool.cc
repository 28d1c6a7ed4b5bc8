#include "controlplane/etcd/lease_pool.h"

#include <algorithm>

#include "lib/metrics/metrics.h"

namespace keelson::etcd {
namespace {

// etcd deletes all keys of an expired lease in one transaction, which must stay small.
constexpr int kMaxUses = 1000;
constexpr std::chrono::seconds kReuse{60};

metrics::Histogram& object_counts =
    metrics::Histograms("etcd_lease_object_counts", "Number of objects attached to a single etcd lease.",
                        {10, 50, 100, 500, 1000, 2500, 5000})
        .HistogramWith();

}  // namespace

Result<int64_t> LeasePool::LeaseFor(std::chrono::seconds ttl, const Limits& limits) {
  {
    MutexLock lock(mutex_);
    auto found = leases_.find(ttl);
    if (found != leases_.end() && found->second.uses < kMaxUses &&
        clock_.SteadyNow() < found->second.reuse_until) {
      ++found->second.uses;
      return found->second.id;
    }
  }
  std::chrono::seconds reuse = std::min<std::chrono::seconds>(
      kReuse, std::max<std::chrono::seconds>(ttl / 20, std::chrono::seconds(1)));
  SteadyTime granted = clock_.SteadyNow();
  KEELSON_ASSIGN_OR_RETURN(int64_t id, client_.GrantLease(ttl + reuse, limits));
  MutexLock lock(mutex_);
  if (auto before = leases_.find(ttl); before != leases_.end()) object_counts.Observe(before->second.uses);
  leases_[ttl] = Lease{id, granted + reuse, 1};
  return id;
}

}  // namespace keelson::etcd
