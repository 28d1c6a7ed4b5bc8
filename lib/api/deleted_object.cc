#include "lib/api/deleted_object.h"

#include <algorithm>

namespace keelson::api {

bool DeleteReturnsObject(const ResourceInfo& resource) {
  static constexpr std::string_view kCore[] = {
      "persistentvolumeclaims", "persistentvolumes", "pods",    "podtemplates",
      "resourcequotas",         "serviceaccounts",   "services"};
  static constexpr std::string_view kStorage[] = {"csidrivers", "csinodes", "storageclasses",
                                                  "volumeattachments", "volumeattributesclasses"};
  auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), resource.resource) != std::end(names);
  };
  if (resource.group == "resource.k8s.io") return true;
  return (resource.group.empty() && among(kCore)) || (resource.group == "storage.k8s.io" && among(kStorage));
}

}  // namespace keelson::api
