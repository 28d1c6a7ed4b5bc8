// The controller manager: one shared informer per resource, and a work queue with workers per controller. It
// uses the API through lib/client only, so it runs against any Kubernetes API server.
#pragma once

#include <functional>
#include <stop_token>

#include "controlplane/controllers/common/options.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// Runs until `stop`. Calls `ready` once, when all informers have synced and the workers have started.
Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready, Clock& clock = Clock::Real());

}  // namespace keelson::controllers
