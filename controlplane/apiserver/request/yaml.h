// YAML in requests and responses.
#pragma once

#include <string>
#include <string_view>

#include "lib/k8s/text/yaml.h"

namespace keelson::apiserver {

using k8s::YamlToJson;

// Converts valid JSON. Keys are sorted, lists are not indented, and scalars are quoted if a YAML 1.1 or 1.2
// reader could take them for another type.
std::string JsonToYaml(std::string_view json);
// Formats one scalar.
std::string YamlScalar(std::string_view text);

}  // namespace keelson::apiserver
