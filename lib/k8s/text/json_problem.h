// Checks JSON syntax with the error messages of Go's encoding/json, which validation quotes.
#pragma once

#include <string>
#include <string_view>

namespace keelson::k8s {

// Empty when `text` is one JSON object or null; otherwise "invalid character 'x' looking for beginning of
// value", "json: cannot unmarshal array into Go value of type map[string]interface {}" and the like.
std::string JsonObjectProblem(std::string_view text);
// Like JsonObjectProblem(), for any JSON value.
std::string JsonProblem(std::string_view text);

}  // namespace keelson::k8s
