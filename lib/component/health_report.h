// What /healthz and its like answer, in the form of Kubernetes' servers: a line a check, or one check alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::component {

struct NamedCheck {
  std::string name;
  std::function<Result<>()> check;  // quick
};

struct HealthQuestion {
  std::string_view endpoint;  // healthz
  std::string_view one;       // only this check; empty: all
  std::vector<std::string_view> excluded;
  bool verbose = false;
};

struct HealthAnswer {
  int status = 200;
  std::string text;  // text/plain
};

// Anonymous clients may often read this: the reason of a failed check is in the log only.
HealthAnswer AnswerHealth(const std::vector<NamedCheck>& checks, const HealthQuestion& question);

// How checks have ended that somebody asked for, of this process: Prometheus text, as /metrics/slis answers
// it.
std::string HealthMetrics();

}  // namespace keelson::component
