// Whether text is JSON, in the words of Go's encoding/json: validation quotes them.
#pragma once

#include <string>
#include <string_view>

namespace keelson::k8s {

// Empty when `text` is one JSON object or null; "invalid character 'x' looking for beginning of value",
// "json: cannot unmarshal array into Go value of type map[string]interface {}" and the like.
std::string JsonObjectProblem(std::string_view text);
// The same for any JSON value.
std::string JsonProblem(std::string_view text);

}  // namespace keelson::k8s
