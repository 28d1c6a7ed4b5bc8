#include "kubelet/objects/object_cache.h"
#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::minutes kDefaultTtl(1);

// Resource versions are numbers, written without leading zeros.
bool IsOlder(const ObjectStore::Object& a, const ObjectStore::Object& b) {
  if (!a || !b) return false;
  const std::string &one = api::Meta(*a).resource_version(), &other = api::Meta(*b).resource_version();
  return one.size() != other.size() ? one.size() < other.size() : one < other;
}

class CachingObjectStore : public ObjectCache {
 public:
  using ObjectCache::ObjectCache;

  void AddReference(const std::string& ns, const std::string& name) override {
    if (auto cached = Find(ns, name)) cached->stale = true;
  }

 private:
  bool IsFresh(CachedObject& cached) KEELSON_REQUIRES(cached.mutex) override {
    if (!cached.object || cached.stale) return false;
    if (IsImmutable(cached.object)) return true;
    const auto ttl = deps_.ttl ? deps_.ttl() : std::nullopt;
    return deps_.clock.SteadyNow() - cached.read < ttl.value_or(kDefaultTtl);
  }

  // A refresh is served from the API server's watch cache, which may be older than the cached object. A new pod
  // needs a consistent read.
  Result<> Fetch(const std::string& ns, const std::string& name, CachedObject& cached)
      KEELSON_REQUIRES(cached.mutex) override {
    const bool consistent = cached.stale.exchange(false) || !cached.object;
    const SteadyTime asked = deps_.clock.SteadyNow();
    auto listed = ListObject(deps_, ns, name, consistent ? "" : "0");
    if (!listed) {
      cached.stale = cached.stale || consistent;
      return listed.error();
    }
    if (!consistent && IsOlder(listed->object, cached.object)) return {};
    cached.object = std::move(listed->object);
    cached.read = asked;
    return {};
  }
};

}  // namespace

std::unique_ptr<ObjectStore> NewCachingObjectStore(ObjectStoreDependencies dependencies) {
  return std::make_unique<CachingObjectStore>(std::move(dependencies));
}

}  // namespace keelson::kubelet
