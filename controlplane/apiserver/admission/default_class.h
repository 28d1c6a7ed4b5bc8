// Selects the default class (storage, ingress) for objects that name none.
#pragma once

#include <memory>
#include <string>

#include "controlplane/storage/store.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {

// Returns the newest class annotated as default with "true", by name if equally old; null: none.
template <typename T>
std::shared_ptr<const T> DefaultClass(storage::Store& store, std::initializer_list<const char*> annotations) {
  std::shared_ptr<const T> best;
  store.ForEach(api::ResourceOf<T>(), [&](const storage::ObjectPtr& object) {
    auto one = std::static_pointer_cast<const T>(object->Decode());
    bool is_default = false;
    for (const char* annotation : annotations) {
      auto found = one->metadata().annotations().find(annotation);
      is_default |= found != one->metadata().annotations().end() && found->second == "true";
    }
    if (!is_default) return;
    auto made = [](const T& of) { return api::FromTime(of.metadata().creation_timestamp()); };
    const bool younger = !best || made(*one) > made(*best);
    const bool first = best && made(*one) == made(*best) && one->metadata().name() < best->metadata().name();
    if (younger || first) best = std::move(one);
  });
  return best;
}

}  // namespace keelson::apiserver
