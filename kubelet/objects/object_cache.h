// What the caching and the watching store share: callers that come while the API server is asked get the same
// answer, a cached object is used while the API server does not answer, and the cache has a size limit.
#pragma once

#include <atomic>
#include <map>

#include "kubelet/objects/object_store.h"
#include "kubelet/objects/object_watch.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct CachedObject {
  Mutex mutex;                                             // held while the API server is asked
  ObjectStore::Object object KEELSON_GUARDED_BY(mutex);    // null: not read yet, or not found
  std::optional<Error> failure KEELSON_GUARDED_BY(mutex);  // of the last request
  SteadyTime read KEELSON_GUARDED_BY(mutex){};
  std::unique_ptr<ObjectWatch> watch KEELSON_GUARDED_BY(mutex);
  std::atomic<uint64_t> requests = 0;
  std::atomic<bool> stale = false;  // a pod refers to it that came after it was read
  std::atomic<size_t> bytes = 0;
  SteadyTime used{};  // guarded by ObjectCache's mutex
};

class ObjectCache : public ObjectStore {  // thread safe
 public:
  explicit ObjectCache(ObjectStoreDependencies dependencies) : deps_(std::move(dependencies)) {}

  Result<Object> Get(const std::string& ns, const std::string& name) final;
  void DeleteReference(const std::string& ns, const std::string& name) final;

 protected:
  // Whether what is cached (an object, or that there is none) can be returned without a request.
  virtual bool IsFresh(CachedObject& cached) KEELSON_REQUIRES(cached.mutex) = 0;
  // Asks the API server and sets cached.object. On an error it is unchanged.
  virtual Result<> Fetch(const std::string& ns, const std::string& name, CachedObject& cached)
      KEELSON_REQUIRES(cached.mutex) = 0;
  // Null: not cached.
  std::shared_ptr<CachedObject> Find(const std::string& ns, const std::string& name);

  static bool IsImmutable(const Object& object);  // false for null
  const ObjectStoreDependencies deps_;

 private:
  std::shared_ptr<CachedObject> FindOrAdd(const std::string& ns, const std::string& name);
  Result<Object> CachedResult(const CachedObject& cached, const std::string& name) const
      KEELSON_REQUIRES(cached.mutex);
  void EvictLeastRecentlyUsed(const CachedObject& just_used);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<CachedObject>> objects_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
