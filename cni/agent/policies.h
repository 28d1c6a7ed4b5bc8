// Network policies as a part of the daemon, or as all of it (--network-policy=only).
#pragma once

#include <functional>
#include <memory>

#include "cni/agent/config.h"
#include "cni/agent/health.h"
#include "cni/agent/node.h"
#include "cni/agent/policy/services.h"
#include "lib/base/error.h"
#include "lib/client/transport.h"

namespace keelson::cni::agent {

// Before the daemon begins: whether what policies need is there. Without policies it removes an earlier run's
// tables, which only an agent opens for new pods.
Result<> PreparePolicies(const Config& config);

// `nodes`: null before the first list. Reports each sync to `health`, which must outlive the result.
Result<std::unique_ptr<PolicyServices>> OpenPolicies(const Config& config,
                                                     const std::shared_ptr<client::Transport>& transport,
                                                     std::function<std::shared_ptr<const NodeMap>()> nodes,
                                                     Health& health);

// The daemon beside another CNI: no routes, no masquerade, no CNI configuration. Runs until SIGTERM or SIGINT;
// returns the process's exit code.
Result<int> RunPoliciesOnly(const Config& config);

}  // namespace keelson::cni::agent
