// YAML as people write it, turned into JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

// The first YAML document as JSON, with the scalar rules that Kubernetes' YAML has (YAML 1.1 booleans).
// kBadRequest. Of keys that are given twice the last one counts; `problems` is told, in the words of strict
// field validation.
Result<std::string> YamlToJson(std::string_view yaml, std::vector<std::string>* problems = nullptr);

}  // namespace keelson::k8s
