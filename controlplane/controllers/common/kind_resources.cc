#include "controlplane/controllers/common/kind_resources.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/deletable_resources.h"
#include "controlplane/controllers/common/json_api.h"
#include "lib/api/codec/codec.h"
#include "lib/base/percent.h"

namespace keelson::controllers {
namespace {

// The versions of a group, from discovery; empty when the group is not served.
Result<metav1::APIGroup> GroupOf(const client::RestClient& api, const std::string& group) {
  metav1::APIGroup out;
  Result<std::string> text = Fetch(api, "/apis/" + PercentEncode(group));
  if (!text && IsNoSuchPath(text.error())) return out;
  if (!text) return text.error();
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(*text, out));
  return out;
}

// The resources of a version of a named group.
Result<metav1::APIResourceList> ResourcesIn(const client::RestClient& api, const std::string& group,
                                            const std::string& version) {
  KEELSON_ASSIGN_OR_RETURN(const std::string text,
                           Fetch(api, "/apis/" + PercentEncode(group) + "/" + PercentEncode(version)));
  metav1::APIResourceList list;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(text, list));
  return list;
}

}  // namespace

std::string ResourceName::Path(std::string_view ns, std::string_view name) const {
  std::string out = group.empty() ? "/api/" : "/apis/" + PercentEncode(group) + "/";
  out += PercentEncode(version);
  if (namespaced) out += "/namespaces/" + PercentEncode(ns);
  return out + "/" + PercentEncode(resource) + "/" + PercentEncode(name);
}

std::string ResourceName::GroupResource() const { return group.empty() ? resource : resource + "." + group; }

Result<std::vector<ResourceName>> ResourcesOf(const client::RestClient& api, const std::string& api_version,
                                              const std::string& kind) {
  const std::string group = api::SplitApiVersion(api_version).first;
  std::vector<ResourceName> out;
  if (const api::ResourceInfo* info = RestMapping(api_version, kind)) {
    out.push_back({std::string(info->group), std::string(info->version), std::string(info->resource),
                   info->namespaced});
    return out;
  }
  if (!group.empty()) {
    KEELSON_ASSIGN_OR_RETURN(const metav1::APIGroup served, GroupOf(api, group));
    for (const metav1::GroupVersionForDiscovery& version : served.versions()) {
      KEELSON_ASSIGN_OR_RETURN(const metav1::APIResourceList list,
                               ResourcesIn(api, group, version.version()));
      for (const metav1::APIResource& resource : list.resources()) {
        if (resource.kind() == kind && resource.name().find('/') == std::string::npos) {
          out.push_back({group, version.version(), resource.name(), resource.namespaced()});
        }
      }
    }
  }
  if (out.empty()) {
    return Error(Code::kNotFound, fmt::format("no matches for kind \"{}\" in group \"{}\"", kind, group));
  }
  return out;
}

Result<ResourceName> ResourceInVersion(const client::RestClient& api, const std::string& api_version,
                                       const std::string& kind) {
  auto [group, version] = api::SplitApiVersion(api_version);
  const Error none(Code::kNotFound,
                   fmt::format("no matches for kind \"{}\" in version \"{}\"", kind, api_version));
  if (group.empty()) return none;
  Result<metav1::APIResourceList> served = ResourcesIn(api, group, version);
  if (!served && IsNoSuchPath(served.error())) return none;
  if (!served) return served.error();
  for (const metav1::APIResource& resource : served->resources()) {
    if (resource.kind() == kind && resource.name().find('/') == std::string::npos) {
      return ResourceName{group, version, resource.name(), resource.namespaced()};
    }
  }
  return none;
}

Result<bool> HasSubresource(const client::RestClient& api, const ResourceName& resource,
                            std::string_view subresource) {
  KEELSON_ASSIGN_OR_RETURN(const metav1::APIResourceList served,
                           ResourcesIn(api, resource.group, resource.version));
  const std::string name = resource.resource + "/" + std::string(subresource);
  return std::any_of(served.resources().begin(), served.resources().end(),
                     [&](const metav1::APIResource& one) { return one.name() == name; });
}

}  // namespace keelson::controllers
