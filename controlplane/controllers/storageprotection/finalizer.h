// Internal to storageprotection: helpers for the protection finalizers.
#pragma once

#include <algorithm>
#include <string_view>

#include "controlplane/controllers/common/controller.h"
#include "lib/api/types.h"

namespace keelson::controllers {

inline bool HasFinalizer(const metav1::ObjectMeta& meta, std::string_view finalizer) {
  return std::find(meta.finalizers().begin(), meta.finalizers().end(), finalizer) != meta.finalizers().end();
}

// Adds the finalizer if `on`, else removes it. Succeeds when the object is gone.
template <typename T>
Result<Requeue> SetFinalizer(const client::RestClient& api, const T& object, const char* finalizer, bool on) {
  if (HasFinalizer(object.metadata(), finalizer) == on) return Requeue{};
  T changed = object;
  auto& finalizers = *changed.mutable_metadata()->mutable_finalizers();
  if (on) {
    *finalizers.Add() = finalizer;
  } else {
    finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), finalizer), finalizers.end());
  }
  Result<T> stored = api.Update(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return Requeue{};
}

}  // namespace keelson::controllers
