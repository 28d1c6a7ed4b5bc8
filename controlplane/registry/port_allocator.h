// Node ports of Services, kept in memory and rebuilt from the Services.
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

  // Errors are kInvalid, in upstream's words; the caller says what the port was for.
  Result<int> Allocate(bool dry_run);
  Result<> Claim(int port, bool dry_run);
  void Release(int port);

  bool InRange(int port) const { return port >= first_ && port <= last_; }
  std::string RangeText() const;  // 30000-32767
  // All that Services use, at the start.
  void Reset(std::set<int> used);
  // Compares with what Services use: takes what is not known as taken (returned), and lets go of ports that
  // nobody has used at several looks in a row: a write under way may be about to.
  std::set<int> Reconcile(const std::set<int>& used);

 private:
  const int first_, last_;
  Mutex mutex_;
  std::set<int> taken_ GUARDED_BY(mutex_);
  std::map<int, int> unused_ GUARDED_BY(mutex_);  // port -> looks that found it unused
};

}  // namespace keelson::registry
