// Regular expressions, and Kubernetes' find and findAll.
#include "lib/cel/library/regex.h"

#include <array>

#include <fmt/format.h>

#include "lib/cel/library/library.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

std::string_view GoMessage(RE2::ErrorCode code) {
  switch (code) {
    case RE2::ErrorBadEscape:
      return "invalid escape sequence";
    case RE2::ErrorBadCharClass:
      return "invalid character class";
    case RE2::ErrorBadCharRange:
      return "invalid character class range";
    case RE2::ErrorMissingBracket:
      return "missing closing ]";
    case RE2::ErrorMissingParen:
      return "missing closing )";
    case RE2::ErrorUnexpectedParen:
      return "unexpected )";
    case RE2::ErrorTrailingBackslash:
      return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
      return "invalid repeat count";
    case RE2::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
      return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
      return "invalid named capture";
    case RE2::ErrorPatternTooLarge:
      return "expression too large";
    default:
      return "regexp/syntax: internal error";
  }
}

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

Value Failed(const Error& error, Arena& arena) { return Value::Error(error.message(), arena); }

Value Matches(Args args, Arena& arena) {
  auto regex = CompileRegex(args[1].text());
  if (!regex) return Failed(regex.error(), arena);
  return Value::Bool(RE2::PartialMatch(Piece(args[0].text()), **regex));
}

Value Find(Args args, Arena& arena) {
  auto regex = CompileRegex(args[1].text());
  if (!regex) return Value::Error("Illegal regex: " + regex.error().message(), arena);
  re2::StringPiece found;
  std::string_view text = args[0].text();
  if (!(*regex)->Match(Piece(text), 0, text.size(), RE2::UNANCHORED, &found, 1)) return Value::String("");
  return Value::String({found.data(), found.size()});
}

Value FindAll(Args args, Arena& arena) {
  auto regex = CompileRegex(args[1].text());
  if (!regex) return Value::Error("Illegal regex: " + regex.error().message(), arena);
  int64_t limit = args.size() > 2 ? args[2].as_int() : -1;
  std::string_view text = args[0].text();
  std::vector<Value> found;
  size_t at = 0;
  const char* last_end = nullptr;
  re2::StringPiece match;
  while (at <= text.size() && (limit < 0 || static_cast<int64_t>(found.size()) < limit)) {
    if (!(*regex)->Match(Piece(text), at, text.size(), RE2::UNANCHORED, &match, 1)) break;
    auto begin = static_cast<size_t>(match.data() - text.data());
    // As Go: no empty match right behind another match.
    if (!match.empty() || match.data() != last_end) {
      found.push_back(Value::String({match.data(), match.size()}));
    }
    last_end = match.data() + match.size();
    at = begin + match.size();
    if (match.empty()) {
      do ++at;
      while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
    }
  }
  return Value::List(arena.New<ArrayList>(arena.CopySpan<Value>(std::span<const Value>(found))));
}

const FunctionRow kMatchRows[] = {
    {"matches", "matches", "", "string,string", "bool", 0, Matches, CostRule::kMatches},
    {"matches", "matches_string", "string", "string", "bool", 0, Matches, CostRule::kMatches},
    {"find", "string_find_string", "string", "string", "string", 0, Find, CostRule::kFind},
    {"findAll", "string_find_all_string", "string", "string", "list<string>", 0, FindAll, CostRule::kFind},
    {"findAll", "string_find_all_string_int", "string", "string,int", "list<string>", 0, FindAll,
     CostRule::kFind},
};

}  // namespace

Result<std::shared_ptr<const RE2>> CompileRegex(std::string_view pattern) {
  struct Kept {
    std::string pattern;
    std::shared_ptr<const RE2> regex;
  };
  constexpr size_t kKept = 64;
  thread_local std::array<Kept, kKept> kept;
  Kept& place = kept[std::hash<std::string_view>()(pattern) % kKept];
  if (place.regex && place.pattern == pattern) return place.regex;
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_shared<const RE2>(Piece(pattern), options);
  if (!regex->ok()) {
    return Error(Code::kBadRequest, fmt::format("error parsing regexp: {}: `{}`",
                                                GoMessage(regex->error_code()), regex->error_arg()));
  }
  place = {std::string(pattern), regex};
  return std::shared_ptr<const RE2>(regex);
}

std::span<const FunctionRow> RegexFunctions() { return kMatchRows; }

}  // namespace keelson::cel
