#include "lib/k8s/schema/formats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>

#include <re2/re2.h>

#include "lib/base/ip.h"
#include "lib/base/text.h"
#include "lib/k8s/schema/addresses.h"
#include "lib/k8s/text/names.h"

namespace keelson::k8s {

namespace {

// A pattern that lives as long as the process.
bool Matches(const re2::RE2& pattern, std::string_view text) {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

std::string DigitsOf(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c >= '0' && c <= '9'; });
  return digits;
}

std::string Without(std::string_view text, std::string_view unwanted) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [&](char c) { return unwanted.find(c) == std::string_view::npos; });
  return out;
}

bool IsBsonObjectId(std::string_view text) {
  static const re2::RE2 pattern("^[0-9a-fA-F]{24}$");
  return Matches(pattern, text);
}

// Labels of letters, symbols, digits and hyphens. A name of one label may have a hyphen only after its first
// character; the last of several labels has two characters at least.
bool IsHostname(std::string_view text) {
#define KEELSON_X R"([a-zA-Z0-9\p{S}\p{L}])"
  static const re2::RE2 only("^" KEELSON_X "-?" KEELSON_X "*$");
  static const re2::RE2 inner("^" KEELSON_X R"((?:[a-zA-Z0-9\-\p{S}\p{L}]*)" KEELSON_X ")?$");
  static const re2::RE2 last("^" KEELSON_X "(?:-?" KEELSON_X ")+$");
#undef KEELSON_X
  constexpr size_t kMaxName = 255, kMaxLabel = 63;
  if (text.size() > kMaxName) return false;
  const std::vector<std::string_view> labels = Split(text, '.');
  for (size_t i = 0; i < labels.size(); ++i) {
    const re2::RE2& pattern = labels.size() == 1 ? only : i + 1 < labels.size() ? inner : last;
    if (labels[i].size() > kMaxLabel || !Matches(pattern, labels[i])) return false;
  }
  return true;
}

bool IsIpv4(std::string_view text) {
  return text.find('.') != std::string_view::npos && IpAddress::Parse(text);
}
bool IsIpv6(std::string_view text) {
  return text.find(':') != std::string_view::npos && IpAddress::Parse(text);
}
bool IsCidr(std::string_view text) { return IpPrefix::Parse(text).has_value(); }

// 6, 8 or 20 bytes: 00:00:5e:00:53:01, 00-00-5e-00-53-01 or 0000.5e00.5301.
bool IsMac(std::string_view text) {
  static const re2::RE2 pattern(
      "^(?i)(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?::[0-9a-f]{2}){7}|[0-9a-f]{2}(?::[0-9a-f]{2}){19}|"
      "[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){7}|[0-9a-f]{2}(?:-[0-9a-f]{2}){19}|"
      "[0-9a-f]{4}(?:\\.[0-9a-f]{4}){2}|[0-9a-f]{4}(?:\\.[0-9a-f]{4}){3}|[0-9a-f]{4}(?:\\.[0-9a-f]{4}){9})$");
  return Matches(pattern, text);
}

bool IsUuid(std::string_view text) {
  static const re2::RE2 pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
  return Matches(pattern, text);
}
bool IsUuid3(std::string_view text) {
  static const re2::RE2 pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
  return Matches(pattern, text);
}
bool IsUuid4(std::string_view text) {
  static const re2::RE2 pattern(
      "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
  return Matches(pattern, text);
}
bool IsUuid5(std::string_view text) {
  static const re2::RE2 pattern(
      "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
  return Matches(pattern, text);
}

bool IsIsbn10(std::string_view text) {
  const std::string digits = Without(text, "- \t\n\v\f\r");
  static const re2::RE2 pattern("^(?:[0-9]{9}X|[0-9]{10})$");
  if (!Matches(pattern, digits)) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    sum += static_cast<int>(i + 1) * (digits[i] == 'X' ? 10 : digits[i] - '0');
  }
  return sum % 11 == 0;
}

bool IsIsbn13(std::string_view text) {
  const std::string digits = Without(text, "- \t\n\v\f\r");
  if (digits.size() != 13 || DigitsOf(digits) != digits) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) sum += (digits[i] - '0') * (i % 2 ? 3 : 1);
  return sum % 10 == 0;
}

bool IsIsbn(std::string_view text) { return IsIsbn10(text) || IsIsbn13(text); }

bool IsCreditCard(std::string_view text) {
  static const re2::RE2 pattern(
      R"(^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$)");
  const std::string digits = DigitsOf(text);
  if (!Matches(pattern, digits)) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {  // the Luhn algorithm, from the last digit
    int digit = digits[digits.size() - 1 - i] - '0';
    if (i % 2) digit = digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
    sum += digit;
  }
  return sum % 10 == 0;
}

bool IsSsn(std::string_view text) {
  static const re2::RE2 pattern(R"(^\d{3}[- ]?\d{2}[- ]?\d{4}$)");
  return text.size() == 11 && Matches(pattern, text);
}

bool IsHexColor(std::string_view text) {
  static const re2::RE2 pattern("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
  return Matches(pattern, text);
}

bool IsRgbColor(std::string_view text) {
  static const re2::RE2 pattern(
      R"(^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$)");
  return Matches(pattern, text);
}

bool IsByte(std::string_view text) {
  static const re2::RE2 pattern(
      "^(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=|[A-Za-z0-9+\\/]{4})$");
  return Matches(pattern, text);
}

bool IsAnything(std::string_view /*text*/) { return true; }

// 2006-01-02
bool IsDate(std::string_view text) {
  static const re2::RE2 pattern("^([0-9]{4})-([0-9]{2})-([0-9]{2})$");
  int year = 0;
  unsigned month = 0, day = 0;
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern, &year, &month, &day) &&
         std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                     std::chrono::day(day))
             .ok();
}

bool IsDateTime(std::string_view text) {
  static const re2::RE2 pattern("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$");
  const std::string lower = Lower(text);
  const std::vector<std::string_view> parts = Split(lower, 't');
  if (parts.size() < 2 || !IsDate(parts[0])) return false;
  int hour = 0, minute = 0, second = 0;
  if (!re2::RE2::PartialMatch(re2::StringPiece(parts[1].data(), parts[1].size()), pattern, &hour, &minute,
                              &second)) {
    return false;
  }
  return hour <= 23 && minute <= 59 && second <= 59;
}

// A duration of Go (1h15m, 1.5s) or of Scala (22 ns, 2 weeks).
bool IsDuration(std::string_view text) {
  static const re2::RE2 go(R"(^[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$)");
  static const re2::RE2 scala(
      R"((?i)(?:^|[^0-9])\d{1,18}\s*(?:ns|nano[a-zµ]*|us|µs|micro[a-zµ]*|ms|milli[a-zµ]*|s|sec[a-zµ]*|m|min[a-zµ]*|h|hr|hour[a-zµ]*|d|day[a-zµ]*|w|wk|week[a-zµ]*)(?:$|[^a-zµ]))");
  return Matches(go, text) || Matches(scala, text);
}

bool IsShortName(std::string_view text) { return CheckDns1123Label(text).empty(); }
bool IsLongName(std::string_view text) { return CheckDns1123Subdomain(text).empty(); }

using Rule = bool (*)(std::string_view);

constexpr std::array<std::pair<std::string_view, Rule>, 27> kFormats = {{
    {"bsonobjectid", IsBsonObjectId},
    {"byte", IsByte},
    {"cidr", IsCidr},
    {"creditcard", IsCreditCard},
    {"date", IsDate},
    {"datetime", IsDateTime},
    {"duration", IsDuration},
    {"email", IsEmailAddress},
    {"hexcolor", IsHexColor},
    {"hostname", IsHostname},
    {"ipv4", IsIpv4},
    {"ipv6", IsIpv6},
    {"isbn", IsIsbn},
    {"isbn10", IsIsbn10},
    {"isbn13", IsIsbn13},
    {"k8slongname", IsLongName},
    {"k8sshortname", IsShortName},
    {"mac", IsMac},
    {"password", IsAnything},
    {"quantity", IsAnything},
    {"rgbcolor", IsRgbColor},
    {"ssn", IsSsn},
    {"uri", IsRequestUri},
    {"uuid", IsUuid},
    {"uuid3", IsUuid3},
    {"uuid4", IsUuid4},
    {"uuid5", IsUuid5},
}};

Rule FindFormat(std::string_view format) {
  const std::string name = Without(format, "-");
  for (const auto& [known, rule] : kFormats) {
    if (known == name) return rule;
  }
  return nullptr;
}

}  // namespace

bool IsCheckedFormat(std::string_view format, SchemaType type) {
  if (format.empty()) return false;
  switch (type) {
    case SchemaType::kAny:
    case SchemaType::kString:
    case SchemaType::kIntOrString:
      return FindFormat(format) != nullptr;
    case SchemaType::kInteger:
      return format == "int32" || format == "int64";
    case SchemaType::kNumber:
      return format == "float" || format == "double";
    default:
      return false;
  }
}

bool HasFormat(std::string_view format, std::string_view text) {
  const Rule rule = FindFormat(format);
  return !rule || rule(text);
}

}  // namespace keelson::k8s
