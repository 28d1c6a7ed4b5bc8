// What the API server says of a CustomResourceDefinition in its status: accepted names and conditions, as
// apiextensions-apiserver's status controllers compute them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiextensions/definition.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

using CustomResourceDefinition = apiextensionsv1::CustomResourceDefinition;
using DefinitionStatus = apiextensionsv1::CustomResourceDefinitionStatus;

inline constexpr const char* kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// Names that the definitions of one group have: of resources (plural, singular, short), and of kinds.
struct UsedNames {
  std::vector<std::string> resources, kinds;
};
UsedNames AcceptedNamesOf(const std::vector<CustomResourceDefinition>& of_group);

// The status that `definition` should have: names (unless another definition of the group has them), NamesAccepted,
// Established, NonStructuralSchema and KubernetesAPIApprovalPolicyConformant. Other conditions stay. `used` may
// contain the definition's own accepted names.
DefinitionStatus StatusOf(const CustomResourceDefinition& definition, const UsedNames& used, WallTime now);

// Sets a condition; the time of transition changes only with the status.
void SetCondition(DefinitionStatus& status, std::string_view type, std::string_view value,
                  std::string_view reason, std::string_view message, int64_t generation, WallTime now);

}  // namespace keelson::apiserver
