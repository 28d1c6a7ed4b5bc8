// YAML in requests and replies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::apiserver {

// The first YAML document as JSON, with the scalar rules that Kubernetes' YAML has (YAML 1.1 booleans).
// kBadRequest. Of keys that are given twice the last one counts; `problems` is told, in the words of strict
// field validation.
Result<std::string> YamlToJson(std::string_view yaml, std::vector<std::string>* problems = nullptr);

// `json` must be valid. Keys are sorted, lists stand under their key without indentation, and scalars are
// quoted where a reader of YAML 1.1 or 1.2 could take them for something else.
std::string JsonToYaml(std::string_view json);
// One scalar of it.
std::string YamlScalar(std::string_view text);

}  // namespace keelson::apiserver
