// Allocates node ports of Services. State is in memory and rebuilt from the Services.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::registry {

class PortAllocator {  // thread safe
 public:
  PortAllocator(int first, int last) : first_(first), last_(last) {}

  // Allocates a free port. Errors of this and Claim() are kInvalid, in upstream's words; the caller adds
  // the port's purpose.
  Result<int> Allocate(bool dry_run);
  Result<> Claim(int port, bool dry_run);
  void Release(int port);

  bool InRange(int port) const { return port >= first_ && port <= last_; }
  std::string RangeText() const;  // 30000-32767
  // Sets the ports that Services use; at start.
  void Reset(std::set<int> used);
  // Compares with the ports that Services use. Takes unknown ones, which it returns. Releases ports that
  // were unused in several calls in a row: a write in progress may be about to use one.
  std::set<int> Reconcile(const std::set<int>& used);

 private:
  const int first_, last_;
  Mutex mutex_;
  std::set<int> taken_ KEELSON_GUARDED_BY(mutex_);
  std::map<int, int> unused_ KEELSON_GUARDED_BY(mutex_);  // port -> calls that found it unused
};

}  // namespace keelson::registry
