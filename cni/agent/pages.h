// The pages of the daemon: /healthz, /livez and /metrics.
#pragma once

#include <vector>

#include "cni/agent/config.h"
#include "cni/agent/health.h"
#include "cni/agent/policy/counters.h"
#include "lib/base/service_group.h"

namespace keelson::cni::agent {

// Adds the servers of Config::healthz and Config::metrics; one if they are the same. The first complaint of
// `healths` is the answer of /healthz. `counters` may be null; all must outlive the group.
void AddPages(ServiceGroup& group, const Config& config, std::vector<const Health*> healths,
              PolicyCounters* counters);

}  // namespace keelson::cni::agent
