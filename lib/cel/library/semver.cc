// Semantic versions (semver.org 2.0, as github.com/blang/semver reads them).
#include <charconv>

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/cel/library/kubernetes_values.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/opaque.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

struct Version {
  uint64_t numbers[3] = {0, 0, 0};
  std::vector<std::string> prerelease;
  std::vector<std::string> build;  // takes no part in comparisons
  bool operator==(const Version& other) const;
};
using SemverValue = OpaqueOf<Version, types::kSemver>;

bool IsNumeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsIdentifier(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") ==
         std::string_view::npos;
}

uint64_t ToNumber(std::string_view text) {
  uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

int Order(uint64_t a, uint64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

// Numbers come before words.
int CompareIdentifiers(const std::string& a, const std::string& b) {
  bool numeric = IsNumeric(a);
  if (numeric != IsNumeric(b)) return numeric ? -1 : 1;
  if (numeric) return Order(ToNumber(a), ToNumber(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

int CompareVersions(const Version& a, const Version& b) {
  for (int i = 0; i < 3; ++i) {
    if (int order = Order(a.numbers[i], b.numbers[i])) return order;
  }
  if (a.prerelease.empty() || b.prerelease.empty()) {
    return static_cast<int>(a.prerelease.empty()) - static_cast<int>(b.prerelease.empty());
  }
  for (size_t i = 0; i < std::min(a.prerelease.size(), b.prerelease.size()); ++i) {
    if (int order = CompareIdentifiers(a.prerelease[i], b.prerelease[i])) return order;
  }
  return Order(a.prerelease.size(), b.prerelease.size());
}

bool Version::operator==(const Version& other) const { return CompareVersions(*this, other) == 0; }

Error Bad(std::string message) { return Error(Code::kBadRequest, std::move(message)); }

Result<uint64_t> ParseNumber(std::string_view text, std::string_view name) {
  if (!IsNumeric(text)) return Bad(fmt::format("Invalid character(s) found in {} number \"{}\"", name, text));
  if (text.size() > 1 && text[0] == '0') {
    std::string title(name);
    title[0] = static_cast<char>(title[0] - 32);
    return Bad(fmt::format("{} number must not contain leading zeroes \"{}\"", title, text));
  }
  uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
    return Bad(fmt::format("strconv.ParseUint: parsing \"{}\": value out of range", text));
  }
  return number;
}

Result<std::vector<std::string>> ParseIdentifiers(std::string_view text, bool prerelease) {
  std::vector<std::string> out;
  for (bool more = true; more;) {
    size_t dot = text.find('.');
    std::string_view part = text.substr(0, dot);
    more = dot != std::string_view::npos;
    if (more) text.remove_prefix(dot + 1);
    if (part.empty()) return Bad(prerelease ? "Prerelease is empty" : "Build meta data is empty");
    if (!IsIdentifier(part)) {
      return Bad(prerelease ? fmt::format("Invalid character(s) found in prerelease \"{}\"", part)
                            : fmt::format("Invalid character(s) found in build meta data \"{}\"", part));
    }
    if (prerelease && IsNumeric(part) && part.size() > 1 && part[0] == '0') {
      return Bad(fmt::format("Numeric PreRelease version must not contain leading zeroes \"{}\"", part));
    }
    out.emplace_back(part);
  }
  return out;
}

Result<Version> ParseVersion(std::string_view text) {
  if (text.empty()) return Bad("Version string empty");
  constexpr std::string_view kNames[] = {"major", "minor", "patch"};
  Version out;
  for (int i = 0; i < 2; ++i) {
    size_t dot = text.find('.');
    if (dot == std::string_view::npos) return Bad("No Major.Minor.Patch elements found");
    KEELSON_ASSIGN_OR_RETURN(out.numbers[i], ParseNumber(text.substr(0, dot), kNames[i]));
    text.remove_prefix(dot + 1);
  }
  std::string_view build, prerelease;
  size_t plus = text.find('+');
  bool has_build = plus != std::string_view::npos;
  if (has_build) build = text.substr(plus + 1), text = text.substr(0, plus);
  size_t dash = text.find('-');
  bool has_prerelease = dash != std::string_view::npos;
  if (has_prerelease) prerelease = text.substr(dash + 1), text = text.substr(0, dash);
  KEELSON_ASSIGN_OR_RETURN(out.numbers[2], ParseNumber(text, kNames[2]));
  if (has_prerelease) {
    KEELSON_ASSIGN_OR_RETURN(out.prerelease, ParseIdentifiers(prerelease, true));
  }
  if (has_build) {
    KEELSON_ASSIGN_OR_RETURN(out.build, ParseIdentifiers(build, false));
  }
  return out;
}

// Without "v" and leading zeros, and with minor and patch numbers.
Result<std::string> Normalized(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::string> parts;
  for (size_t dot; parts.size() < 2 && (dot = text.find('.')) != std::string_view::npos;
       text.remove_prefix(dot + 1)) {
    parts.emplace_back(text.substr(0, dot));
  }
  parts.emplace_back(text);
  for (std::string& part : parts) {
    size_t digit = part.size() > 1 ? part.find_first_not_of('0') : 0;
    if (digit == std::string::npos) digit = part.size();
    part.erase(0, digit);
    if (digit > 0 && (part.empty() || part[0] < '0' || part[0] > '9')) part.insert(0, "0");
  }
  if (parts.size() < 3 && parts.back().find_first_of("+-") != std::string::npos) {
    return Bad("short version cannot contain PreRelease/Build meta data");
  }
  while (parts.size() < 3) parts.emplace_back("0");
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

Result<Version> FromArgs(Args args) {
  if (args.size() < 2 || !args[1].as_bool()) return ParseVersion(args[0].text());
  KEELSON_ASSIGN_OR_RETURN(std::string text, Normalized(args[0].text()));
  return ParseVersion(text);
}

const Version& VersionOf(const Value& value) { return static_cast<const SemverValue&>(value.opaque()).value; }

Value ToSemver(Args args, Arena& arena) {
  auto version = FromArgs(args);
  return version ? Value::Opaque(arena.New<SemverValue>(std::move(*version)))
                 : Value::Error(version.error().message(), arena);
}

Value IsSemver(Args args, Arena&) { return Value::Bool(FromArgs(args).has_value()); }
Value SemverGreater(Args args, Arena&) {
  return Value::Bool(CompareVersions(VersionOf(args[0]), VersionOf(args[1])) > 0);
}
Value SemverLess(Args args, Arena&) {
  return Value::Bool(CompareVersions(VersionOf(args[0]), VersionOf(args[1])) < 0);
}
Value SemverCompare(Args args, Arena&) {
  return Value::Int(CompareVersions(VersionOf(args[0]), VersionOf(args[1])));
}

template <int kIndex>
Value SemverNumber(Args args, Arena&) {
  return Value::Int(static_cast<int64_t>(VersionOf(args[0]).numbers[kIndex]));
}

#define S "kubernetes.Semver"
constexpr CostRule kOneEach = CostRule::kNominal;

const FunctionRow kSemverRows[] = {
    {"semver", "string_to_semver", "", "string", S, 33, ToSemver, CostRule::kParse},
    {"isSemver", "is_semver_string", "", "string", "bool", 33, IsSemver, CostRule::kParse},
    {"isGreaterThan", "semver_is_greater_than", S, S, "bool", 33, SemverGreater, kOneEach},
    {"isLessThan", "semver_is_less_than", S, S, "bool", 33, SemverLess, kOneEach},
    {"compareTo", "semver_compare_to", S, S, "int", 33, SemverCompare, kOneEach},
    {"major", "semver_major", S, "", "int", 33, SemverNumber<0>, kOneEach},
    {"minor", "semver_minor", S, "", "int", 33, SemverNumber<1>, kOneEach},
    {"patch", "semver_patch", S, "", "int", 33, SemverNumber<2>, kOneEach},
    {"semver", "string_bool_to_semver", "", "string,bool", S, 33, ToSemver, CostRule::kParse},
    {"isSemver", "is_semver_string_bool", "", "string,bool", "bool", 33, IsSemver, CostRule::kParse},
};
#undef S

}  // namespace

Value NewSemver(std::string_view text, Arena& arena) {
  const Value argument = Value::String(text);
  return ToSemver({&argument, 1}, arena);
}

std::span<const FunctionRow> SemverFunctions() { return kSemverRows; }

}  // namespace keelson::cel
