// YAML request bodies.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::apiserver {

// One YAML document as JSON, with the scalar rules that Kubernetes' YAML has (YAML 1.1 booleans).
// kBadRequest.
Result<std::string> YamlToJson(std::string_view yaml);

}  // namespace keelson::apiserver
