// Patches of ownerReferences, for controllers that adopt and release.
#pragma once

#include <string>
#include <string_view>

#include "lib/api/types.h"

namespace keelson::controllers {

// Returns `text` as a JSON string literal.
std::string JsonQuoted(std::string_view text);

// Strategic merge patches of an object's ownerReferences. The patch contains the object's UID, so it fails
// with a conflict when a new object has the same name. A non-empty `finalizer` is added by AdoptPatch() and
// removed by ReleasePatch().
std::string AdoptPatch(const metav1::OwnerReference& owner, std::string_view object_uid,
                       std::string_view finalizer = "");
std::string ReleasePatch(std::string_view owner_uid, std::string_view object_uid,
                         std::string_view finalizer = "");

}  // namespace keelson::controllers
