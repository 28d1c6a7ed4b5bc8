// The resource versions that a controller wrote (upstream's ConsistencyStore). A sync from an older object in
// the informer's store would repeat what an earlier sync did.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class ConsistencyStore {  // thread safe
 public:
  // Records a write: the metadata that the API returned for it.
  void WroteAt(const std::string& key, const metav1::ObjectMeta& written);
  // True when the object in the store is at least as new as the last write. If false, the caller skips the
  // sync: the pending update event enqueues the key again.
  bool IsReady(const std::string& key, const metav1::ObjectMeta& stored);
  // Call when the object is deleted.
  void Clear(const std::string& key);

 private:
  Mutex mutex_;
  std::map<std::string, uint64_t> versions_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
