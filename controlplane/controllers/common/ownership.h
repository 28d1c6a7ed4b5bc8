// Patches of ownerReferences, for controllers that adopt and release.
#pragma once

#include <string>
#include <string_view>

#include "lib/api/types.h"

namespace keelson::controllers {

// Strategic merge patches of one object's ownerReferences. The uid in the patch makes it fail with a
// conflict when the object has been replaced by another of the same name. A `finalizer` that is not empty
// comes and goes with the owner.
std::string AdoptPatch(const metav1::OwnerReference& owner, std::string_view object_uid,
                       std::string_view finalizer = "");
std::string ReleasePatch(std::string_view owner_uid, std::string_view object_uid,
                         std::string_view finalizer = "");

}  // namespace keelson::controllers
