// The scale subresource of custom resources: its values stand where the definition says.
#pragma once

#include <optional>
#include <string>

#include "controlplane/apiextensions/custom_resource.h"
#include "lib/base/error.h"

namespace keelson::registry {

struct Scaled {
  int32_t wanted = 0, present = 0;
  std::string selector;
};

// kInternal when the object has no number at the definition's specReplicasPath.
Result<Scaled> ReadCustomScale(const apiextensions::CustomRow& row, const api::Message& parent);
// Sets the wanted number, and makes the objects on its path.
Result<> SetCustomReplicas(const apiextensions::CustomRow& row, api::Message& parent, int32_t replicas);

}  // namespace keelson::registry
