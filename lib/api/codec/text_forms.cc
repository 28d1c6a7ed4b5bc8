#include "lib/api/codec/text_forms.h"

#include <array>
#include <cstdio>
#include <limits>

#include <fmt/format.h>

#include "lib/base/base64.h"

namespace keelson::api {
namespace {

// Days since 1970-01-01 of a proleptic Gregorian date, and back (Howard Hinnant, "chrono-compatible
// low-level date algorithms").
int64_t DaysFromCivil(int64_t year, int month, int day) {
  year -= month <= 2;
  int64_t era = (year >= 0 ? year : year - 399) / 400;
  int64_t year_of_era = year - era * 400;
  int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

struct Civil {
  int64_t year;
  int month, day;
};
Civil CivilFromDays(int64_t days) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  int64_t day_of_era = days - era * 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * day_of_year + 2) / 153;
  int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year_of_era + era * 400 + (month <= 2), month,
          static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1)};
}

int DaysIn(int64_t year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

void PutDigits(char* to, int64_t value, int width) {
  for (int i = width - 1; i >= 0; --i, value /= 10) to[i] = static_cast<char>('0' + value % 10);
}

constexpr std::string_view kLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroLayout = "2006-01-02T15:04:05.000000Z07:00";

// Parses a time by its layout, and keeps what the error message needs.
class TimeParser {
 public:
  TimeParser(std::string_view text, bool micro) : text_(text), rest_(text), micro_(micro) {}

  Result<Instant> Parse() {
    int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (!Number(4, "2006", year) || !Literal('-') || !Number(2, "01", month) || !Literal('-') ||
        !Number(2, "02", day) || !Literal('T') || !Number(2, "15", hour) || !Literal(':') ||
        !Number(2, "04", minute) || !Literal(':') || !Number(2, "05", second)) {
      return Mismatch();
    }
    Instant time;
    if (!Fraction(time.nanos)) return Mismatch();
    int64_t offset = 0;
    if (!Zone(offset)) return Mismatch();
    if (!rest_.empty()) return Fail(": extra text: \"" + std::string(rest_) + "\"");
    if (month < 1 || month > 12) return Fail(": month out of range");
    if (day < 1 || day > DaysIn(year, static_cast<int>(month))) return Fail(": day out of range");
    if (hour > 23) return Fail(": hour out of range");
    if (minute > 59) return Fail(": minute out of range");
    if (second > 59) return Fail(": second out of range");
    time.seconds = DaysFromCivil(year, static_cast<int>(month), static_cast<int>(day)) * 86400 + hour * 3600 +
                   minute * 60 + second - offset;
    return time;
  }

 private:
  bool Number(size_t width, std::string_view part, int64_t& value) {
    part_ = part;
    if (rest_.size() < width) return false;
    int64_t number = 0;
    for (char c : rest_.substr(0, width)) {
      if (c < '0' || c > '9') return false;
      number = number * 10 + (c - '0');
    }
    value = number;
    rest_.remove_prefix(width);
    return true;
  }
  bool Literal(char c) {
    if (rest_.empty() || rest_.front() != c) {
      literal_ = c;
      part_ = {&literal_, 1};
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  bool Fraction(int32_t& nanos) {
    part_ = ".000000";
    if (rest_.empty() || rest_.front() != '.') return !micro_;
    size_t digits = 0;
    int64_t value = 0;
    while (digits + 1 < rest_.size() && rest_[digits + 1] >= '0' && rest_[digits + 1] <= '9') {
      if (digits < 9) value = value * 10 + (rest_[digits + 1] - '0');
      ++digits;
    }
    if (digits == 0 || (micro_ && digits != 6)) return false;
    for (size_t i = digits; i < 9; ++i) value *= 10;
    nanos = static_cast<int32_t>(value);
    rest_.remove_prefix(digits + 1);
    return true;
  }
  bool Zone(int64_t& offset) {
    if (!rest_.empty() && rest_.front() == 'Z') {
      rest_.remove_prefix(1);
      return true;
    }
    std::string_view at = rest_;
    part_ = "Z07:00";
    if (rest_.empty() || (rest_.front() != '+' && rest_.front() != '-')) return false;
    int64_t sign = rest_.front() == '-' ? -1 : 1, hours = 0, minutes = 0;
    rest_.remove_prefix(1);
    bool good = Number(2, "Z07:00", hours) && Literal(':') && Number(2, "Z07:00", minutes) && hours <= 24 &&
                minutes < 60;
    if (!good) {
      rest_ = at;
      part_ = "Z07:00";
      return false;
    }
    offset = sign * (hours * 3600 + minutes * 60);
    return true;
  }
  Error Mismatch() const {
    return Fail(fmt::format(" as \"{}\": cannot parse \"{}\" as \"{}\"", micro_ ? kMicroLayout : kLayout,
                            rest_, part_));
  }
  Error Fail(const std::string& why) const {
    return Error(Code::kBadRequest, "parsing time \"" + std::string(text_) + "\"" + why);
  }

  std::string_view text_, rest_, part_;
  char literal_ = 0;
  bool micro_;
};

}  // namespace

void AppendTime(Instant time, bool micro, Sink& out) {
  int64_t days = time.seconds / 86400, rest = time.seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  Civil date = CivilFromDays(days);
  if (date.year < 0 || date.year > 9999) {
    date = {date.year < 0 ? 0 : 9999, 1, 1};  // Go refuses to print these
  }
  char* to = out.Room(32);
  PutDigits(to, date.year, 4);
  to[4] = to[7] = '-';
  PutDigits(to + 5, date.month, 2);
  PutDigits(to + 8, date.day, 2);
  to[10] = 'T';
  PutDigits(to + 11, rest / 3600, 2);
  to[13] = to[16] = ':';
  PutDigits(to + 14, rest / 60 % 60, 2);
  PutDigits(to + 17, rest % 60, 2);
  size_t n = 19;
  if (micro) {
    to[n++] = '.';
    PutDigits(to + n, time.nanos / 1000, 6);
    n += 6;
  }
  to[n++] = 'Z';
  out.Advance(n);
}

Result<Instant> ParseTime(std::string_view text, bool micro) { return TimeParser(text, micro).Parse(); }

bool HasFourDigitYear(int64_t seconds) {
  static const int64_t kFirst = DaysFromCivil(0, 1, 1) * 86400, kEnd = DaysFromCivil(10'000, 1, 1) * 86400;
  return seconds >= kFirst && seconds < kEnd;
}

bool IsZeroTime(Instant time) {
  static const int64_t kYearOne = DaysFromCivil(1, 1, 1) * 86400;
  return time.seconds == kYearOne && time.nanos == 0;
}

std::string FormatGoDuration(int64_t nanos) {
  if (nanos == 0) return "0s";
  bool negative = nanos < 0;
  uint64_t value = negative ? 0 - static_cast<uint64_t>(nanos) : static_cast<uint64_t>(nanos);
  std::string out = negative ? "-" : "";
  auto fraction = [](uint64_t whole, uint64_t part, int digits) {
    std::string text = fmt::format("{}", whole);
    if (part == 0) return text;
    std::string decimals = fmt::format("{:0{}}", part, digits);
    while (decimals.back() == '0') decimals.pop_back();
    return text + "." + decimals;
  };
  if (value < 1000) return out + fmt::format("{}ns", value);
  if (value < 1'000'000) return out + fraction(value / 1000, value % 1000, 3) + "\u00b5s";
  if (value < 1'000'000'000) return out + fraction(value / 1'000'000, value % 1'000'000, 6) + "ms";
  uint64_t seconds = value / 1'000'000'000;
  if (seconds >= 3600) out += fmt::format("{}h", seconds / 3600);
  if (seconds >= 60) out += fmt::format("{}m", seconds / 60 % 60);
  return out + fraction(seconds % 60, value % 1'000'000'000, 9) + "s";
}

Result<int64_t> ParseGoDuration(std::string_view text) {
  auto invalid = [&] {
    return Error(Code::kBadRequest, "time: invalid duration \"" + std::string(text) + "\"");
  };
  std::string_view rest = text;
  bool negative = !rest.empty() && rest.front() == '-';
  if (negative || (!rest.empty() && rest.front() == '+')) rest.remove_prefix(1);
  if (rest == "0") return 0;
  if (rest.empty()) return invalid();
  static constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"ns", 1},         {"us", 1000},         {"\u00b5s", 1000},     {"\u03bcs", 1000},
      {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};
  long double total = 0;
  while (!rest.empty()) {
    long double value = 0, scale = 1;
    size_t digits = 0, i = 0;
    for (bool point = false;
         i < rest.size() && ((rest[i] >= '0' && rest[i] <= '9') || (rest[i] == '.' && !point)); ++i) {
      if (rest[i] == '.') {
        point = true;
        continue;
      }
      ++digits;
      value = value * 10 + (rest[i] - '0');
      if (point) scale *= 10;
    }
    if (digits == 0) return invalid();
    rest.remove_prefix(i);
    size_t length = 0;
    while (length < rest.size() && rest[length] != '.' && (rest[length] < '0' || rest[length] > '9')) {
      ++length;
    }
    std::string_view unit = rest.substr(0, length);
    if (unit.empty()) {
      return Error(Code::kBadRequest, "time: missing unit in duration \"" + std::string(text) + "\"");
    }
    int64_t factor = 0;
    for (const auto& [name, nanos] : kUnits) {
      if (name == unit) factor = nanos;
    }
    if (factor == 0) {
      return Error(Code::kBadRequest, "time: unknown unit \"" + std::string(unit) + "\" in duration \"" +
                                          std::string(text) + "\"");
    }
    total += value / scale * static_cast<long double>(factor);
    rest.remove_prefix(length);
  }
  if (total > static_cast<long double>(std::numeric_limits<int64_t>::max())) return invalid();
  auto nanos = static_cast<int64_t>(total);
  return negative ? -nanos : nanos;
}

void AppendBase64(std::string_view bytes, Sink& out) {
  const size_t size = Base64Size(bytes.size());
  EncodeBase64To(out.Room(size), bytes);
  out.Advance(size);
}

Result<> DecodeBase64(std::string_view text, Sink& out) {
  KEELSON_ASSIGN_OR_RETURN(const size_t size,
                           DecodeBase64To(out.Room(text.size() / 4 * 3 + 3), text, Base64::kStd, "\r\n"));
  out.Advance(size);
  return {};
}

}  // namespace keelson::api
