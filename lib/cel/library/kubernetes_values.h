// Values of Kubernetes' own types, for variables.
#pragma once

#include <string_view>

#include "lib/api/quantity.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

Value NewQuantity(const api::Amount& amount, Arena& arena);
// An error value, in upstream's words, when the text is no semantic version.
Value NewSemver(std::string_view text, Arena& arena);

}  // namespace keelson::cel
