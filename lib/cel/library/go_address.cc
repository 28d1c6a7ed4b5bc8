#include "lib/cel/library/go_address.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "lib/base/json_quote.h"

namespace keelson::cel {
namespace {

struct Problem {
  std::string_view what, at;  // at: the rest of the text; empty: the whole is meant
};

constexpr Problem kUnknown{"unable to parse IP", ""};
constexpr int kFields4 = 4, kFields6 = 8;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Problem InDottedFields(std::string_view text) {
  int value = 0, digits = 0, dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsDigit(text[i])) {
      if (digits == 1 && value == 0) return {"IPv4 field has octet with leading zero", ""};
      value = value * 10 + (text[i] - '0');
      ++digits;
      if (value > 255) return {"IPv4 field has value >255", ""};
    } else if (text[i] != '.') {
      return {"unexpected character", text.substr(i)};
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '.') {
      return {"IPv4 field must have at least one digit", text.substr(i)};
    } else if (++dots == kFields4) {
      return {"IPv4 address too long", ""};
    } else {
      value = digits = 0;
    }
  }
  return dots < kFields4 - 1 ? Problem{"IPv4 address too short", ""} : kUnknown;
}

// The hexadecimal digits at the begin.
size_t HexDigits(std::string_view text) {
  return static_cast<size_t>(
      std::find_if_not(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }) -
      text.begin());
}

// An IPv4 address in the place of the last two fields.
Problem InEmbedded(std::string_view rest, int fields, bool shortened) {
  if (!shortened && fields != kFields6 - 2) {
    return {"embedded IPv4 address must replace the final 2 fields of the address", rest};
  }
  if (fields + 2 > kFields6) {
    return {"too many hex fields to fit an embedded IPv4 at the end of the address", rest};
  }
  return InDottedFields(rest);
}

Problem InColonFields(std::string_view text) {
  std::string_view rest = text;
  bool shortened = rest.starts_with("::");
  if (shortened) rest.remove_prefix(2);
  int fields = 0;
  while (fields < kFields6) {
    const size_t digits = HexDigits(rest);
    if (digits > 4) return {"each group must have 4 or fewer digits", rest};
    if (digits == 0) return {"each colon-separated field must have at least one digit", rest};
    if (digits < rest.size() && rest[digits] == '.') return InEmbedded(rest, fields, shortened);
    ++fields;
    rest.remove_prefix(digits);
    if (rest.empty()) break;
    if (rest[0] != ':') return {"unexpected character, want colon", rest};
    if (rest.size() == 1) return {"colon must be followed by more characters", rest};
    rest.remove_prefix(1);
    if (rest[0] != ':') continue;
    if (shortened) return {"multiple :: in address", rest};
    shortened = true;
    rest.remove_prefix(1);
    if (rest.empty()) break;
  }
  if (!rest.empty()) return {"trailing garbage after address", rest};
  if (fields < kFields6) return shortened ? kUnknown : Problem{"address string too short", ""};
  return shortened ? Problem{"the :: must expand to at least one field of zeros", ""} : kUnknown;
}

Problem ProblemOf(std::string_view text) {
  const size_t first = text.find_first_of(".:%");
  if (first == std::string_view::npos) return kUnknown;
  if (text[first] == '.') return InDottedFields(text);
  if (text[first] == '%') return {"missing IPv6 address", ""};
  return InColonFields(text);
}

}  // namespace

std::string WhyNoAddress(std::string_view text) {
  const Problem problem = ProblemOf(text);
  std::string out = fmt::format("ParseAddr({}): {}", JsonQuoted(text), problem.what);
  if (!problem.at.empty()) out += fmt::format(" (at {})", JsonQuoted(problem.at));
  return out;
}

}  // namespace keelson::cel
