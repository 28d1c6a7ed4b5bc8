#include "kubelet/objects/object_cache.h"

#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMostBytes = 8 << 20;  // per kind, encoded; the least recently used go first

}  // namespace

std::shared_ptr<CachedObject> ObjectCache::FindOrAdd(const std::string& ns, const std::string& name) {
  MutexLock lock(mutex_);
  auto& cached = objects_[api::KeyOf(ns, name)];
  if (!cached) cached = std::make_shared<CachedObject>();
  cached->used = deps_.clock.SteadyNow();
  return cached;
}

std::shared_ptr<CachedObject> ObjectCache::Find(const std::string& ns, const std::string& name) {
  MutexLock lock(mutex_);
  auto it = objects_.find(api::KeyOf(ns, name));
  return it == objects_.end() ? nullptr : it->second;
}

void ObjectCache::DeleteReference(const std::string& ns, const std::string& name) {
  MutexLock lock(mutex_);
  objects_.erase(api::KeyOf(ns, name));
}

bool ObjectCache::IsImmutable(const Object& object) {
  if (!object) return false;
  const auto* field = object->GetDescriptor()->FindFieldByName("immutable");
  return field && object->GetReflection()->GetBool(*object, field);
}

Result<ObjectStore::Object> ObjectCache::CachedResult(const CachedObject& cached,
                                                      const std::string& name) const {
  if (cached.object) return cached.object;
  if (cached.failure) return *cached.failure;
  return Error(Code::kNotFound, deps_.info.GroupResource() + " \"" + name + "\" not found");
}

Result<ObjectStore::Object> ObjectCache::Get(const std::string& ns, const std::string& name) {
  const std::shared_ptr<CachedObject> cached = FindOrAdd(ns, name);
  const uint64_t before = cached->requests;
  MutexLock lock(cached->mutex);
  if (cached->requests != before || IsFresh(*cached)) {
    return CachedResult(*cached, name);  // another caller has just asked
  }
  if (cached->object && deps_.api_backoff.Active()) return cached->object;
  ++cached->requests;
  auto asked = Fetch(ns, name, *cached);
  cached->failure = asked ? std::nullopt : std::optional(asked.error());
  if (asked) {
    deps_.api_backoff.Succeeded();
  } else {
    deps_.api_backoff.Failed(asked.error());
  }
  cached->bytes = cached->object ? cached->object->ByteSizeLong() : 0;
  EvictLeastRecentlyUsed(*cached);
  return CachedResult(*cached, name);
}

void ObjectCache::EvictLeastRecentlyUsed(const CachedObject& just_used) {
  MutexLock lock(mutex_);
  size_t total = 0;
  for (const auto& [key, cached] : objects_) total += cached->bytes;
  while (total > kMostBytes) {
    auto oldest = objects_.end();
    for (auto it = objects_.begin(); it != objects_.end(); ++it) {
      if (it->second.get() != &just_used && it->second->bytes > 0 &&
          (oldest == objects_.end() || it->second->used < oldest->second->used)) {
        oldest = it;
      }
    }
    if (oldest == objects_.end()) return;
    total -= oldest->second->bytes;
    objects_.erase(oldest);
  }
}

}  // namespace keelson::kubelet
