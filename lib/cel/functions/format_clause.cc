#include "lib/cel/functions/format_clause.h"

#include <charconv>

#include <fmt/format.h>

namespace keelson::cel {
namespace {

constexpr int kDefaultPrecision = 6, kLargestPrecision = 100;

Error Unparsed(std::string_view why) {
  return Error(Code::kBadRequest, fmt::format("could not parse formatting clause: {}", why));
}

// ".2" at the start of `rest`; the default if there is none.
Result<int> TakePrecision(std::string_view& rest) {
  if (!rest.starts_with('.')) return kDefaultPrecision;
  size_t end = 1;
  while (end < rest.size() && rest[end] >= '0' && rest[end] <= '9') ++end;
  if (end == rest.size()) {
    return Unparsed("error while parsing precision: could not find end of precision specifier");
  }
  int precision = 0;
  auto [stop, error] = std::from_chars(rest.data() + 1, rest.data() + end, precision);
  if (error != std::errc() || precision > kLargestPrecision) {
    return Unparsed(
        fmt::format("error while parsing precision: error while converting precision to integer: "
                    "strconv.Atoi: parsing \"{}\": invalid syntax",
                    rest.substr(1, end - 1)));
  }
  rest.remove_prefix(end);
  return precision;
}

}  // namespace

std::string_view TakenByClause(char verb) {
  switch (verb) {
    case 's':
      return "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
             "durations, and timestamps";
    case 'd':
      return "decimal clause can only be used on integers";
    case 'f':
      return "fixed-point clause can only be used on doubles";
    case 'e':
      return "scientific clause can only be used on doubles";
    case 'b':
      return "only integers and bools can be formatted as binary";
    case 'o':
      return "octal clause can only be used on integers";
    default:
      return "only integers, byte buffers, and strings can be formatted as hex";
  }
}

Result<FormatClause> TakeFormatClause(std::string_view& rest) {
  if (rest.empty()) return Error(Code::kBadRequest, "unexpected end of string");
  FormatClause out;
  KEELSON_ASSIGN_OR_RETURN(out.precision, TakePrecision(rest));
  out.verb = rest[0];
  if (std::string_view("sdfebxXo").find(out.verb) == std::string_view::npos) {
    return Unparsed(fmt::format("unrecognized formatting clause \"{}\"", out.verb));
  }
  rest.remove_prefix(1);
  return out;
}

}  // namespace keelson::cel
