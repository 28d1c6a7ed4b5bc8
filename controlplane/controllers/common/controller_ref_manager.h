// Adoption and release of objects by owner reference and selector (upstream's ControllerRefManager).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "controlplane/controllers/common/ownership.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/client/informer.h"

namespace keelson::controllers {

// Index key: the UID of the controller, or "orphans/<namespace>" for objects without a controller.
extern const char kByOwner[];
std::vector<std::string> OwnerIndex(const metav1::ObjectMeta& meta);

// Returns the objects that `owner` controls. Releases controlled objects that no longer match the selector,
// and adopts matching orphans. `adoptable` returns false for an object that must not be adopted (a pod that
// has ended). An owner that is being deleted neither adopts nor releases. A non-empty `finalizer` is added on
// adoption and removed on release.
template <typename T, typename Owner>
Result<std::vector<std::shared_ptr<const T>>> ClaimObjects(
    const client::RestClient& api, const client::Informer<T>& informer, const Owner& owner,
    const api::LabelSelector& selector, const std::function<bool(const T&)>& adoptable = nullptr,
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
      // kInvalid: the object no longer has this owner.
      auto released = patch(*object, ReleasePatch(meta.uid(), object->metadata().uid(), finalizer));
      if (!released && !released.error().Is(Code::kNotFound) && !released.error().Is(Code::kInvalid)) {
        return released.error().Wrap("release");
      }
    }
  }
  if (deleting) return claimed;
  bool verified = false;
  for (auto& object : informer.ByIndex(kByOwner, "orphans/" + meta.namespace_())) {
    if (object->metadata().has_deletion_timestamp() || !selector.Matches(object->metadata().labels())) {
      continue;
    }
    if (adoptable && !adoptable(*object)) continue;
    if (!verified) {
      // The store may lag behind a deletion of the owner, so check with the API before adopting.
      KEELSON_ASSIGN_OR_RETURN(Owner live, api.template Get<Owner>(meta.namespace_(), meta.name()));
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
