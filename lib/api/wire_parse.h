// Internal to lib/api: steps that the JSON and the protobuf side of the codec share.
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

// True for the common spellings that are known to be canonical without computing; false says nothing.
bool IsCanonicalQuantity(std::string_view text);
// Replaces `object` by what the bytes say. No limit on nesting but the JSON depth limit's equivalent.
Result<> Parse(std::string_view wire, Message& object);

}  // namespace keelson::api::wire_parse
