// Maps a kind to resources (as a RESTMapper): built-in kinds from the table, others by discovery.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/client/rest.h"

namespace keelson::controllers {

struct ResourceName {
  std::string group, version, resource;
  bool namespaced = true;
  // /apis/apps/v1/namespaces/NS/deployments/NAME
  std::string Path(std::string_view ns, std::string_view name) const;
  std::string GroupResource() const;  // deployments.apps
};

// Returns the candidates in the order to try. kNotFound with upstream's message when no resource has the
// kind.
Result<std::vector<ResourceName>> ResourcesOf(const client::RestClient& api, const std::string& api_version,
                                              const std::string& kind);
// The same in that version only.
Result<ResourceName> ResourceInVersion(const client::RestClient& api, const std::string& api_version,
                                       const std::string& kind);
// Whether the server serves that part of the resource: "scale".
Result<bool> HasSubresource(const client::RestClient& api, const ResourceName& resource,
                            std::string_view subresource);

}  // namespace keelson::controllers
