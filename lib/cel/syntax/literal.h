// Literals of strings, bytes and numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::cel {

// The content of a string literal with its quotes and perhaps prefix r; of bytes without their prefix b. kBadRequest, in
// upstream's words, for an escape sequence that is out of range.
Result<std::string> UnquoteLiteral(std::string_view literal, bool bytes);

std::optional<int64_t> ParseIntLiteral(std::string_view text, bool negative);  // decimal or 0x...
std::optional<uint64_t> ParseUintLiteral(std::string_view text);               // without its suffix u
std::optional<double> ParseDoubleLiteral(std::string_view text);

void AppendUtf8(std::string& out, uint32_t code_point);

}  // namespace keelson::cel
