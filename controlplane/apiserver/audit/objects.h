// Bodies of requests and replies as audit events show them.
#pragma once

#include <string>
#include <string_view>

namespace keelson::apiserver::audit {

// Any form that a body may have (JSON, YAML, protobuf, patches), as compact JSON; empty when it is none of
// them.
std::string ObjectJson(std::string_view content_type, std::string_view body, bool omit_managed_fields);

struct ObjectNames {
  std::string name, ns, uid, version;
};
// From an object's JSON.
ObjectNames NamesOf(std::string_view json);

}  // namespace keelson::apiserver::audit
