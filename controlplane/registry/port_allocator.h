// Allocates node ports of Services. The allocations are a RangeAllocation in etcd, at upstream's key and in its form, so
// that several API servers, also upstream's, never give one port twice.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controlplane/storage/range_allocations.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::registry {

class PortAllocator {  // thread safe; calls block
 public:
  PortAllocator(storage::RangeAllocations& ranges, int first, int last)
      : ranges_(ranges), first_(first), last_(last), bits_(static_cast<size_t>(last - first + 1)) {}

  // Takes a free port. Errors of this and Claim() are kInvalid, in upstream's words, if the port cannot be had; the
  // caller adds the port's purpose. Others are etcd's: the port may be taken then, until a repair.
  Result<int> Allocate(bool dry_run, const etcd::Limits& limits);
  Result<> Claim(int port, bool dry_run, const etcd::Limits& limits);
  // The repair handles failures.
  void Release(int port);

  bool InRange(int port) const { return port >= first_ && port <= last_; }
  std::string RangeText() const;  // 30000-32767
  // Compares with the ports that Services use. Takes unknown ones, and returns them unless this makes the cluster's
  // first allocations. Releases ports that were unused in several calls in a row: a write in progress may be about to
  // use one.
  Result<std::set<int>> Reconcile(const std::set<int>& used, const etcd::Limits& limits);

 private:
  using Bits = std::vector<bool>;  // by distance from the first port
  size_t IndexOf(int port) const { return static_cast<size_t>(port - first_); }
  Result<> Load(const etcd::Limits& limits) KEELSON_REQUIRES(mutex_);
  void Take(storage::RangeAllocation stored) KEELSON_REQUIRES(mutex_);
  // Applies `change` to the newest allocations and stores them, again after each lost race. Writes nothing if `change`
  // changes nothing or fails.
  Result<> Update(const std::function<Result<>(Bits&)>& change, const etcd::Limits& limits)
      KEELSON_REQUIRES(mutex_);
  void Tell() KEELSON_REQUIRES(mutex_);

  storage::RangeAllocations& ranges_;
  const int first_, last_;
  Mutex mutex_;
  Bits bits_ KEELSON_GUARDED_BY(mutex_);  // as of revision_
  bool loaded_ KEELSON_GUARDED_BY(mutex_) = false;
  int64_t revision_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::map<int, int> unused_ KEELSON_GUARDED_BY(mutex_);  // port -> calls that found it unused
};

}  // namespace keelson::registry
