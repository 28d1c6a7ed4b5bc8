// Small works on text in ASCII: case, white space, lists. Bytes that are not ASCII stay as they are, whatever the
// locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keelson {

inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

std::string Lower(std::string_view text);
std::string Upper(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

std::string Hex(std::string_view bytes);  // lower case, two digits a byte

// Without characters of `what` at both ends, the beginning, or the end.
std::string_view Trim(std::string_view text, std::string_view what = kWhiteSpace);
std::string_view TrimLeft(std::string_view text, std::string_view what = kWhiteSpace);
std::string_view TrimRight(std::string_view text, std::string_view what = kWhiteSpace);

// The parts between separators, empty ones too: n separators make n + 1 parts.
std::vector<std::string_view> Split(std::string_view text, char separator);
// The items of a list such as a flag has it. As Split(), but an empty text has no items, and a separator at the end
// ends the last item.
std::vector<std::string> SplitList(std::string_view text, char separator = ',');
// The parts that are not empty.
std::vector<std::string_view> SplitWords(std::string_view text, std::string_view separators = kWhiteSpace);

// `parts` are strings, or views of them.
template <typename Parts>
std::string Join(const Parts& parts, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) out += separator;
    first = false;
    out += part;
  }
  return out;
}

}  // namespace keelson
