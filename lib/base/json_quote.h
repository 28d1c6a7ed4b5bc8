// Text as a JSON string (RFC 8259), for who writes JSON by hand. What Go's encoding/json writes byte for byte, with "<" as
// "\u003c", is lib/api/codec/json_text.h's.
#pragma once

#include <string>
#include <string_view>

namespace keelson {

// In double quotes. Characters that JSON does not allow are escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonQuoted(std::string_view text);
void AppendJsonQuoted(std::string& out, std::string_view text);

// The length of the UTF-8 sequence that `text`, which is not empty, begins with; 0: it is none (RFC 3629: too long,
// a surrogate, beyond U+10FFFF or cut).
size_t Utf8SequenceLength(std::string_view text);

}  // namespace keelson
