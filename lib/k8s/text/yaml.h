// Converts YAML to JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

// The first YAML document as JSON, with the scalar rules of Kubernetes' YAML (YAML 1.1 booleans).
// kBadRequest for malformed YAML. The last of several equal keys wins; `problems` gets the others, in the
// words of strict field validation.
Result<std::string> YamlToJson(std::string_view yaml, std::vector<std::string>* problems = nullptr);

}  // namespace keelson::k8s
