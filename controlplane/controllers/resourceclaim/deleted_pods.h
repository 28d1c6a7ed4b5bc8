// UIDs of pods whose deletion was seen: a claim may be taken from them without a look at the API.
#pragma once

#include <deque>
#include <string>
#include <unordered_set>

#include "lib/base/mutex.h"

namespace keelson::controllers {

class DeletedPods {  // thread safe; keeps the last `most`
 public:
  explicit DeletedPods(size_t most = 500) : most_(most) {}
  void Add(const std::string& uid);
  bool Has(const std::string& uid) const;

 private:
  const size_t most_;
  mutable Mutex mutex_;
  std::deque<std::string> order_ KEELSON_GUARDED_BY(mutex_);
  std::unordered_set<std::string> uids_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
