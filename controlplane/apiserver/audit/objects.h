// Request and response bodies in audit events.
#pragma once

#include <string>
#include <string_view>

namespace keelson::apiserver::audit {

// Converts a body of any content type (JSON, YAML, protobuf, patches) to compact JSON; empty for other
// content.
std::string ObjectJson(std::string_view content_type, std::string_view body, bool omit_managed_fields);

struct ObjectNames {
  std::string name, ns, uid, version;
};
// Reads the names from an object's JSON.
ObjectNames NamesOf(std::string_view json);

}  // namespace keelson::apiserver::audit
