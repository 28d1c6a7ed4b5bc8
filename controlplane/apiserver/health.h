// /healthz, /livez, /readyz and what hangs below them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

struct HealthCheck {
  std::string name;
  bool live = true;                 // counts for /livez and /healthz; all count for /readyz
  std::function<Result<>()> check;  // quick
};

class Health {
 public:
  explicit Health(std::vector<HealthCheck> checks) : checks_(std::move(checks)) {}
  // false: the path is not about health.
  bool Handle(Context& context) const;
  std::vector<std::string> Paths() const;

 private:
  const std::vector<HealthCheck> checks_;
};

}  // namespace keelson::apiserver
