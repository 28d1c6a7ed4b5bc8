// The scale subresource of custom resources: its values stand where the definition says.
#pragma once

#include <optional>
#include <string>

#include "controlplane/apiextensions/custom_resource.h"
#include "lib/base/error.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {

struct Scaled {
  int32_t wanted = 0, present = 0;
  std::string selector;
  std::string missing;  // the definition's specReplicasPath, if the object has no value there
};

// kInternal for values of a wrong type, in upstream's words.
Result<Scaled> ReadCustomScale(const apiextensions::CustomRow& row, const api::Message& parent);
// Whether the values of scale are such that a Scale can have them. `status_only`: those of the status.
k8s::FieldErrors CheckCustomScale(const apiextensions::CustomRow& row, const api::Message& object,
                                  bool status_only);
// Sets the wanted number, and makes the objects on its path.
Result<> SetCustomReplicas(const apiextensions::CustomRow& row, api::Message& parent, int32_t replicas);

}  // namespace keelson::registry
