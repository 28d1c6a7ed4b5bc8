// The default FlowSchemas and PriorityLevelConfigurations. Mandatory ones are always restored. Suggested ones
// are updated until a user changes them, and recreated when deleted.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "controlplane/registry/registry.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"

namespace keelson::apiserver::flowcontrol {

namespace flowcontrolv1 = api::flowcontrol::v1;

struct BootstrapObjects {
  std::vector<flowcontrolv1::PriorityLevelConfiguration> mandatory_levels, suggested_levels;
  std::vector<flowcontrolv1::FlowSchema> mandatory_schemas, suggested_schemas;
};
const BootstrapObjects& Bootstrap();

// Call at start and periodically.
Result<> EnsureBootstrapObjects(registry::Registry& registry, std::stop_token stop);

// Sets the condition Dangling in each FlowSchema's status: whether its priority level is missing.
Result<> UpdateDangling(registry::Registry& registry, WallTime now, std::stop_token stop);

}  // namespace keelson::apiserver::flowcontrol
