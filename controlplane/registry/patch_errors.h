// Internal to controlplane/registry: upstream's messages about the result of a patch.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// Rewords a type error for strategic patches, whose result upstream converts from a map instead of decoding
// JSON. `message` is the codec's; any other message stays as it is.
//   json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
//   -> unrecognized type: int32
std::string ConverterWords(std::string_view message);

}  // namespace keelson::registry
