#include "controlplane/controllers/podautoscaler/resources.h"

#include <fmt/format.h>

#include "controlplane/controllers/common/deletable_resources.h"
#include "controlplane/controllers/podautoscaler/json_api.h"
#include "lib/api/codec/codec.h"
#include "lib/base/percent.h"

namespace keelson::controllers::podautoscaler {
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
      KEELSON_ASSIGN_OR_RETURN(const std::string text, Fetch(api, "/apis/" + PercentEncode(group) + "/" +
                                                                      PercentEncode(version.version())));
      metav1::APIResourceList list;
      KEELSON_RETURN_IF_ERROR(api::DecodeJson(text, list));
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

}  // namespace keelson::controllers::podautoscaler
