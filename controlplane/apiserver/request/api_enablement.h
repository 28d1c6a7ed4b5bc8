// --runtime-config: the enabled API versions and resources. As upstream, beta and alpha versions are disabled
// by default.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

class ApiEnablement {
 public:
  // The defaults.
  ApiEnablement() = default;
  // Parses "group/version=true", "group/version/resource=false", "v1=true", and api/all, api/ga, api/beta,
  // api/alpha. More specific settings win, in any order; a resource says nothing of the rest of its version.
  // Versions and resources without a value are true. kInvalid in upstream's wording. Logs enabled APIs that
  // do not exist here.
  static Result<ApiEnablement> Parse(const std::vector<std::string>& settings);

  // True when the resource is served.
  bool Serves(const api::ResourceInfo& info) const;

 private:
  bool ServesVersion(std::string_view group, std::string_view version) const;

  std::map<std::string, bool, std::less<>> wide_;       // ga, beta, alpha, if set
  std::map<std::string, bool, std::less<>> versions_;   // "apps/v1", "/v1"
  std::map<std::string, bool, std::less<>> resources_;  // "apps/v1/deployments"
};

}  // namespace keelson::apiserver
