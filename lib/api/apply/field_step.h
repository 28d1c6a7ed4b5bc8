// Inside lib/api only: the text of a path's step.
#pragma once

#include <string>
#include <string_view>

namespace keelson::api {

// `text` as it stands in FieldsV1, in the one form that equal steps share. `known` is false for a kind that
// this version does not know. False at malformed text.
bool CanonicalStep(std::string_view text, std::string& step, bool& known);

}  // namespace keelson::api
