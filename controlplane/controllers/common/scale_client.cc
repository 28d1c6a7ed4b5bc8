#include "controlplane/controllers/common/scale_client.h"

#include <optional>

#include "controlplane/controllers/common/json_api.h"
#include "lib/api/codec/codec.h"

namespace keelson::controllers {

Result<FoundScale> ScaleClient::Get(std::string_view ns, const std::string& api_version,
                                    const std::string& kind, const std::string& name) const {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<ResourceName> resources, ResourcesOf(api_, api_version, kind));
  std::optional<Error> first;
  for (const ResourceName& resource : resources) {
    Result<FoundScale> found = GetOf(resource, ns, name);
    if (found) return found;
    if (!first) first = found.error();
  }
  return *first;
}

Result<FoundScale> ScaleClient::GetOf(const ResourceName& resource, std::string_view ns,
                                      const std::string& name) const {
  return Again({resource.Path(ns, name) + "/scale", {}});
}

Result<FoundScale> ScaleClient::Again(const FoundScale& found) const {
  FoundScale out;
  out.path = found.path;
  KEELSON_ASSIGN_OR_RETURN(const std::string text, Fetch(api_, found.path));
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(text, out.scale));
  return out;
}

Result<> ScaleClient::Put(const FoundScale& found) const {
  KEELSON_RETURN_IF_ERROR(
      Call(api_, "PUT", found.path, api::EncodeJson(found.scale, {"autoscaling", "v1", "Scale"})));
  return {};
}

}  // namespace keelson::controllers
