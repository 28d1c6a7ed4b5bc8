// Which of the APIs that this server has it serves: --runtime-config. As upstream has it, what is beta or
// alpha is off unless it is turned on.
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
  // As by default.
  ApiEnablement() = default;
  // "group/version=true", "group/version/resource=false", "v1=true", and api/all, api/ga, api/beta,
  // api/alpha; no value is true. What is narrower wins, whatever the order. kInvalid in upstream's words.
  // What is turned on and not here is logged.
  static Result<ApiEnablement> Parse(const std::vector<std::string>& settings);

  // Whether requests for the row find anything.
  bool Serves(const api::ResourceInfo& info) const;

 private:
  bool ServesVersion(std::string_view group, std::string_view version) const;

  std::map<std::string, bool, std::less<>> wide_;       // ga, beta, alpha, where they are set
  std::map<std::string, bool, std::less<>> versions_;   // "apps/v1", "/v1"
  std::map<std::string, bool, std::less<>> resources_;  // "apps/v1/deployments"
};

}  // namespace keelson::apiserver
