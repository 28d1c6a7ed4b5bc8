#include "kubelet/objects/kept_objects.h"

#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMostBytes = 8 << 20;  // a kind, on the wire; what was not used for longest goes first

}  // namespace

std::shared_ptr<KeptObject> KeptObjects::Use(const std::string& ns, const std::string& name) {
  MutexLock lock(mutex_);
  auto& kept = kept_[api::KeyOf(ns, name)];
  if (!kept) kept = std::make_shared<KeptObject>();
  kept->used = parts_.clock.SteadyNow();
  return kept;
}

std::shared_ptr<KeptObject> KeptObjects::Find(const std::string& ns, const std::string& name) {
  MutexLock lock(mutex_);
  auto it = kept_.find(api::KeyOf(ns, name));
  return it == kept_.end() ? nullptr : it->second;
}

void KeptObjects::Released(const std::string& ns, const std::string& name) {
  MutexLock lock(mutex_);
  kept_.erase(api::KeyOf(ns, name));
}

bool KeptObjects::NeverChanges(const Object& object) {
  if (!object) return false;
  const auto* field = object->GetDescriptor()->FindFieldByName("immutable");
  return field && object->GetReflection()->GetBool(*object, field);
}

Result<ObjectReader::Object> KeptObjects::Known(const KeptObject& kept, const std::string& name) const {
  if (kept.object) return kept.object;
  if (kept.failure) return *kept.failure;
  return Error(Code::kNotFound, parts_.info.GroupResource() + " \"" + name + "\" not found");
}

Result<ObjectReader::Object> KeptObjects::Get(const std::string& ns, const std::string& name) {
  const std::shared_ptr<KeptObject> kept = Use(ns, name);
  const uint64_t before = kept->questions;
  MutexLock lock(kept->busy);
  if (kept->questions != before || IsFresh(*kept)) return Known(*kept, name);  // somebody else has just asked
  if (kept->object && parts_.silence.Lasts()) return kept->object;
  ++kept->questions;
  auto asked = Ask(ns, name, *kept);
  kept->failure = asked ? std::nullopt : std::optional(asked.error());
  if (asked)
    parts_.silence.Heard();
  else
    parts_.silence.Failed(asked.error());
  kept->bytes = kept->object ? kept->object->ByteSizeLong() : 0;
  DropUnused(*kept);
  return Known(*kept, name);
}

void KeptObjects::DropUnused(const KeptObject& just_used) {
  MutexLock lock(mutex_);
  size_t total = 0;
  for (const auto& [key, kept] : kept_) total += kept->bytes;
  while (total > kMostBytes) {
    auto oldest = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->second.get() != &just_used && it->second->bytes > 0 &&
          (oldest == kept_.end() || it->second->used < oldest->second->used))
        oldest = it;
    if (oldest == kept_.end()) return;
    total -= oldest->second->bytes;
    kept_.erase(oldest);
  }
}

}  // namespace keelson::kubelet
