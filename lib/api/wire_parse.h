// Internal to lib/api: helpers that the JSON and the protobuf side of the codec share.
#pragma once

#include <string>
#include <string_view>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::api::wire_parse {

// The contents of a Quantity message that is zero.
inline constexpr std::string_view kZeroQuantity{
    "\x0a\x01"
    "0",
    3};

// True for common spellings that are obviously canonical; false does not mean that the text is not.
bool IsCanonicalQuantity(std::string_view text);
// Parses `wire` into `object`, replacing its contents. Limits nesting only to the equivalent of the JSON
// depth limit.
Result<> Parse(std::string_view wire, Message& object);

}  // namespace keelson::api::wire_parse
