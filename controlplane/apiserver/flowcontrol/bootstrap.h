// The FlowSchemas and PriorityLevelConfigurations that every cluster has. Mandatory ones are kept as they are
// meant; suggested ones are kept up as long as nobody has changed them, and come back when they are deleted.
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

// To be called at start and now and then.
Result<> EnsureBootstrapObjects(registry::Registry& registry, std::stop_token stop);

// Tells in every FlowSchema's status whether the level that it names is there (the condition Dangling).
Result<> UpdateDangling(registry::Registry& registry, WallTime now, std::stop_token stop);

}  // namespace keelson::apiserver::flowcontrol
