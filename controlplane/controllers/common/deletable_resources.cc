#include "controlplane/controllers/common/deletable_resources.h"

#include <set>
#include <string>

namespace keelson::controllers {

const std::vector<const api::ResourceInfo*>& DeletableResources() {
  static const auto* kinds = [] {
    auto* out = new std::vector<const api::ResourceInfo*>;
    std::set<std::string_view> storages;
    for (const api::ResourceInfo& info : api::Resources()) {
      if (info.IsSubresource() || info.etcd_prefix.empty()) continue;
      if (!info.HasVerb("list") || !info.HasVerb("watch") || !info.HasVerb("delete")) continue;
      if (storages.insert(info.etcd_prefix).second) out->push_back(&info);
    }
    return out;
  }();
  return *kinds;
}

const api::ResourceInfo* RestMapping(std::string_view api_version, std::string_view kind) {
  auto [group, version] = api::SplitApiVersion(api_version);
  if (const api::ResourceInfo* info = api::FindKind(group, version, kind)) return info;
  for (const api::ResourceInfo& info : api::Resources()) {
    if (!info.IsSubresource() && info.kind_group == group && info.kind == kind) return &info;
  }
  return nullptr;
}

}  // namespace keelson::controllers
