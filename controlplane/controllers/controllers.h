// The controller manager: one informer a kind, shared; a queue and some workers a controller. It reaches the
// API through lib/client alone, so it runs against any Kubernetes API server.
#pragma once

#include <functional>
#include <stop_token>

#include "controlplane/controllers/common/options.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// Runs until `stop`. `ready` is called once when all informers have synced and the workers have started.
Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready, Clock& clock = Clock::Real());

}  // namespace keelson::controllers
