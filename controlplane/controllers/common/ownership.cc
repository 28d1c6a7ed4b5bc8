#include "controlplane/controllers/common/ownership.h"

#include <fmt/format.h>

#include "controlplane/controllers/common/controller_ref_manager.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {

const char kByOwner[] = "owner";

std::vector<std::string> OwnerIndex(const metav1::ObjectMeta& meta) {
  if (const metav1::OwnerReference* owner = api::ControllerOf(meta)) return {owner->uid()};
  return {"orphans/" + meta.namespace_()};
}

std::string AdoptPatch(const metav1::OwnerReference& owner, std::string_view object_uid,
                       std::string_view finalizer) {
  const std::string held =
      finalizer.empty() ? "" : fmt::format(R"("finalizers":[{}],)", JsonQuoted(finalizer));
  return fmt::format(
      R"({{"metadata":{{{}"ownerReferences":[{{"apiVersion":{},"kind":{},"name":{},"uid":{},"controller":true,)"
      R"("blockOwnerDeletion":true}}],"uid":{}}}}})",
      held, JsonQuoted(owner.api_version()), JsonQuoted(owner.kind()), JsonQuoted(owner.name()),
      JsonQuoted(owner.uid()), JsonQuoted(object_uid));
}

std::string ReleasePatch(std::string_view owner_uid, std::string_view object_uid,
                         std::string_view finalizer) {
  const std::string held = finalizer.empty() ? ""
                                             : fmt::format(R"("$deleteFromPrimitiveList/finalizers":[{}],)",
                                                           JsonQuoted(finalizer));
  return fmt::format(R"({{"metadata":{{{}"ownerReferences":[{{"$patch":"delete","uid":{}}}],"uid":{}}}}})",
                     held, JsonQuoted(owner_uid), JsonQuoted(object_uid));
}

}  // namespace keelson::controllers
