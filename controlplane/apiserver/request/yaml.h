// YAML in requests and replies.
#pragma once

#include <string>
#include <string_view>

#include "lib/k8s/text/yaml.h"

namespace keelson::apiserver {

using k8s::YamlToJson;

// `json` must be valid. Keys are sorted, lists stand under their key without indentation, and scalars are
// quoted where a reader of YAML 1.1 or 1.2 could take them for something else.
std::string JsonToYaml(std::string_view json);
// One scalar of it.
std::string YamlScalar(std::string_view text);

}  // namespace keelson::apiserver
