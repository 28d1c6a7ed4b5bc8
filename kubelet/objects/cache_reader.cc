#include "kubelet/objects/kept_objects.h"
#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::minutes kDefaultTtl(1);

// Resource versions are numbers, written without leading zeros.
bool IsOlder(const ObjectReader::Object& a, const ObjectReader::Object& b) {
  if (!a || !b) return false;
  const std::string &one = api::Meta(*a).resource_version(), &other = api::Meta(*b).resource_version();
  return one.size() != other.size() ? one.size() < other.size() : one < other;
}

class CacheReader : public KeptObjects {
 public:
  using KeptObjects::KeptObjects;

  void Wanted(const std::string& ns, const std::string& name) override {
    if (auto kept = Find(ns, name)) kept->renew = true;
  }

 private:
  bool IsFresh(KeptObject& kept) REQUIRES(kept.busy) override {
    if (!kept.object || kept.renew) return false;
    if (NeverChanges(kept.object)) return true;
    const auto ttl = parts_.ttl ? parts_.ttl() : std::nullopt;
    return parts_.clock.SteadyNow() - kept.read < ttl.value_or(kDefaultTtl);
  }

  // What only has to be looked at again comes from what the API server has at hand, which may be older than
  // what is known; what a new pod needs is read for certain.
  Result<> Ask(const std::string& ns, const std::string& name, KeptObject& kept)
      REQUIRES(kept.busy) override {
    const bool certain = kept.renew.exchange(false) || !kept.object;
    const SteadyTime asked = parts_.clock.SteadyNow();
    auto listed = ListObject(parts_, ns, name, certain ? "" : "0");
    if (!listed) {
      kept.renew = kept.renew || certain;
      return listed.error();
    }
    if (!certain && IsOlder(listed->object, kept.object)) return {};
    kept.object = std::move(listed->object);
    kept.read = asked;
    return {};
  }
};

}  // namespace

std::unique_ptr<ObjectReader> NewCacheReader(ReaderParts parts) {
  return std::make_unique<CacheReader>(std::move(parts));
}

}  // namespace keelson::kubelet
