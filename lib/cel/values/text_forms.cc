#include "lib/cel/values/text_forms.h"

#include <algorithm>
#include <string>

#include "lib/api/duration.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

struct Unit {
  std::string_view name;
  bool prefix;  // longer words count too: "sec", "seconds"
  int64_t nanos;
};

constexpr int64_t kSecond = 1'000'000'000;
constexpr Unit kUnits[] = {
    {"ns", false, 1},
    {"nano", true, 1},
    {"us", false, 1000},
    {"µs", false, 1000},
    {"micro", true, 1000},
    {"ms", false, 1'000'000},
    {"milli", true, 1'000'000},
    {"s", false, kSecond},
    {"sec", true, kSecond},
    {"m", false, 60 * kSecond},
    {"min", true, 60 * kSecond},
    {"h", false, 3600 * kSecond},
    {"hr", false, 3600 * kSecond},
    {"hour", true, 3600 * kSecond},
    {"d", false, 86400 * kSecond},
    {"day", true, 86400 * kSecond},
    {"w", false, 7 * 86400 * kSecond},
    {"week", true, 7 * 86400 * kSecond},
};

std::optional<int64_t> UnitOf(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const Unit& unit : kUnits) {
    if (unit.prefix ? word.starts_with(unit.name) : word == unit.name) return unit.nanos;
  }
  return std::nullopt;
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<uint8_t>(c) >= 0x80;
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<int64_t> ParseFormatDuration(std::string_view text) {
  if (auto nanos = api::ParseGoDuration(text)) return *nanos;
  int64_t sum = 0;
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    if (!IsDigit(text[i])) {
      ++i;
      continue;
    }
    int64_t factor = 0;
    for (; i < text.size() && IsDigit(text[i]); ++i) {
      if (__builtin_mul_overflow(factor, 10, &factor) ||
          __builtin_add_overflow(factor, text[i] - '0', &factor)) {
        return std::nullopt;
      }
    }
    while (i < text.size() && text[i] == ' ') ++i;
    size_t begin = i;
    while (i < text.size() && IsWordByte(text[i])) ++i;
    auto unit = UnitOf(std::string(text.substr(begin, i - begin)));
    if (!unit) continue;
    if (__builtin_mul_overflow(factor, *unit, &factor) || __builtin_add_overflow(sum, factor, &sum)) {
      return std::nullopt;
    }
    any = true;
  }
  if (!any) return std::nullopt;
  return sum;
}

std::optional<Timestamp> ParseFormatDateTime(std::string_view text) {
  if (auto time = ParseTime(text)) return time;
  if (text.empty()) return Timestamp{};
  constexpr size_t kDateLength = 10, kToMinutes = 16;
  if (text.size() < kToMinutes) return std::nullopt;
  std::string fixed(text);
  if (fixed[kDateLength] == ' ') fixed[kDateLength] = 'T';
  if (fixed.size() == kToMinutes || fixed[kToMinutes] != ':') fixed.insert(kToMinutes, ":00");
  size_t zone = fixed.find_first_of("Z+-", kToMinutes);
  if (zone == std::string::npos) {
    fixed += 'Z';
  } else if (fixed[zone] != 'Z' && fixed.size() == zone + 5) {
    fixed.insert(zone + 3, ":");
  }
  return ParseTime(fixed);
}

}  // namespace keelson::cel
