// Internal to lib/api: the text of a path's step.
#pragma once

#include <string>
#include <string_view>

namespace keelson::api {

// Converts `text` from FieldsV1 to the one form that all equal steps share. `known`: false for a kind of
// step that this version does not know. Returns false for malformed text.
bool CanonicalStep(std::string_view text, std::string& step, bool& known);

}  // namespace keelson::api
