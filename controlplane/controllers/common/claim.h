// Adopting and releasing: which objects of a kind belong to one owner, by owner reference and selector.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "controlplane/controllers/common/ownership.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/client/informer.h"

namespace keelson::controllers {

// Index by "uid of the controller", or by "orphans/<namespace>" without one.
extern const char kByOwner[];
std::vector<std::string> OwnerIndex(const metav1::ObjectMeta& meta);

// Objects that `owner` controls, after those that its selector has ceased to match were released and orphans
// that it matches adopted. `adoptable` keeps objects from being adopted (pods that have ended). An owner that
// is being deleted neither adopts nor releases. A `finalizer` that is not empty comes and goes with the
// owner.
template <typename T, typename Owner>
Result<std::vector<std::shared_ptr<const T>>> Claim(const client::RestClient& api,
                                                    const client::Informer<T>& informer, const Owner& owner,
                                                    const api::LabelSelector& selector,
                                                    const std::function<bool(const T&)>& adoptable = nullptr,
                                                    std::string_view finalizer = "") {
  const metav1::ObjectMeta& meta = owner.metadata();
  const bool deleting = meta.has_deletion_timestamp();
  auto patch = [&](const T& object, std::string body) {
    return api.template Patch<T>(meta.namespace_(), object.metadata().name(),
                                 client::PatchType::kStrategicMerge, std::move(body));
  };
  std::vector<std::shared_ptr<const T>> claimed;
  for (auto& object : informer.ByIndex(kByOwner, meta.uid())) {
    if (selector.Matches(object->metadata().labels())) {
      claimed.push_back(std::move(object));
    } else if (!deleting) {
      // Invalid: it has no such owner any more.
      auto released = patch(*object, ReleasePatch(meta.uid(), object->metadata().uid(), finalizer));
      if (!released && !released.error().Is(Code::kNotFound) && !released.error().Is(Code::kInvalid))
        return released.error().Wrap("release");
    }
  }
  if (deleting) return claimed;
  bool verified = false;
  for (auto& object : informer.ByIndex(kByOwner, "orphans/" + meta.namespace_())) {
    if (object->metadata().has_deletion_timestamp() || !selector.Matches(object->metadata().labels()))
      continue;
    if (adoptable && !adoptable(*object)) continue;
    if (!verified) {
      // The store may lag behind a deletion of the owner; whoever adopts must be alive.
      ASSIGN_OR_RETURN(Owner live, api.template Get<Owner>(meta.namespace_(), meta.name()));
      if (live.metadata().uid() != meta.uid() || live.metadata().has_deletion_timestamp()) return claimed;
      verified = true;
    }
    auto adopted = patch(*object, AdoptPatch(api::ControllerRef(owner), object->metadata().uid(), finalizer));
    if (adopted) {
      claimed.push_back(std::make_shared<T>(*std::move(adopted)));
    } else if (!adopted.error().Is(Code::kNotFound)) {
      return adopted.error().Wrap("adopt");
    }
  }
  return claimed;
}

}  // namespace keelson::controllers
