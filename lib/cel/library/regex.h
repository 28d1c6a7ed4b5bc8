// Regular expressions of CEL: RE2, with Go's messages.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <re2/re2.h>

#include "lib/base/error.h"

namespace keelson::cel {

// kBadRequest "error parsing regexp: missing closing ): `(`". Compiled patterns are kept for the thread's next calls.
Result<std::shared_ptr<const RE2>> CompileRegex(std::string_view pattern);

}  // namespace keelson::cel
