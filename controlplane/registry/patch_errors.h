// Internal to the registry: how upstream words what is wrong with the outcome of a patch.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// The outcome of a strategic patch is not decoded from JSON but converted from a map, in other words.
// `message` is the codec's; what is no wrong type stays as it is.
//   json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
//   -> unrecognized type: int32
std::string ConverterWords(std::string_view message);

}  // namespace keelson::registry
