// Internal to lib/k8s: formats of strings and numbers that schemas may ask for (kube-openapi's strfmt).
#pragma once

#include <string_view>

#include "lib/k8s/schema/nodes.h"

namespace keelson::k8s {

// Whether values of a type are checked against a format. Others are accepted in schemas and ignored.
bool IsCheckedFormat(std::string_view format, SchemaType type);
// Whether text has a format; true for formats that are not checked. Hyphens in `format` do not count.
bool HasFormat(std::string_view format, std::string_view text);

}  // namespace keelson::k8s
