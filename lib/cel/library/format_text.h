// string.format(): clauses like %s and %.2f.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

// kBadRequest in upstream's words. Clauses: s, d, f, e, b, x, X, o, %. Numbers of %f and %e look as in US English, which
// is upstream's locale: 1,234.50 and 1.234000 × 10⁰³.
Result<std::string> FormatText(std::string_view format, const ListValue& args, Arena& arena);

}  // namespace keelson::cel
