// What a controller has written and its informer may not show yet. Planning from an object older than one's
// own last write would do things twice.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class LatestWrites {  // thread safe
 public:
  void Note(const std::string& key, const metav1::ObjectMeta& written);
  // The object, as the store has it, is at least as new as what was written last. When it is not, its update
  // is still to come and will bring the key back to the queue.
  bool Shown(const std::string& key, const metav1::ObjectMeta& stored);
  void Forget(const std::string& key);

 private:
  Mutex mutex_;
  std::map<std::string, uint64_t> versions_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
