#include "kubelet/objects/object_cache.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

namespace {

// A watch that has ended is restarted with a list, which also has the changes that were missed.
class WatchingObjectStore : public ObjectCache {
 public:
  using ObjectCache::ObjectCache;

 private:
  bool IsFresh(CachedObject& cached) KEELSON_REQUIRES(cached.mutex) override {
    if (IsImmutable(cached.object)) return true;
    if (cached.watch && !cached.watch->Follow(cached.object)) cached.watch = nullptr;
    if (IsImmutable(cached.object)) cached.watch = nullptr;  // from now on
    return cached.watch || IsImmutable(cached.object);
  }

  Result<> Fetch(const std::string& ns, const std::string& name, CachedObject& cached)
      KEELSON_REQUIRES(cached.mutex) override {
    KEELSON_ASSIGN_OR_RETURN(ListedObject listed, ListObject(deps_, ns, name, ""));
    cached.object = std::move(listed.object);
    if (IsImmutable(cached.object)) return {};
    auto watch = ObjectWatch::Open(deps_, ns, name, listed.version);
    if (watch) {
      cached.watch = std::move(*watch);
    } else {  // the list is a good answer; the next use lists again
      log::Debug("Cannot watch an object",
                 {{"resource", deps_.info.GroupResource()}, {"name", name}, {"err", watch.error()}});
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<ObjectStore> NewWatchingObjectStore(ObjectStoreDependencies dependencies) {
  return std::make_unique<WatchingObjectStore>(std::move(dependencies));
}

}  // namespace keelson::kubelet
