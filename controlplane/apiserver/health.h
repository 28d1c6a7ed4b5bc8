// /healthz, /livez, /readyz and the paths below them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

struct HealthCheck {
  std::string name;
  bool live = true;                 // part of /livez and /healthz; /readyz includes all checks
  std::function<Result<>()> check;  // must be quick
};

class Health {
 public:
  explicit Health(std::vector<HealthCheck> checks) : checks_(std::move(checks)) {}
  // Returns false for other paths.
  bool Handle(Context& context) const;
  std::vector<std::string> Paths() const;

 private:
  const std::vector<HealthCheck> checks_;
};

}  // namespace keelson::apiserver
