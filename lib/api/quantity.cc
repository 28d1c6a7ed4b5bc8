#include "lib/api/quantity.h"

#include <limits>

namespace keelson::api {
namespace {

__extension__ typedef __int128 Int128;

constexpr int64_t kNano = 1'000'000'000;
// Kubernetes' upper limit for amounts.
constexpr Int128 kMax = Int128{std::numeric_limits<int64_t>::max()} * kNano;

constexpr std::string_view kDecimalSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
constexpr std::string_view kBinarySuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

constexpr std::string_view kFormatWrong =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kSuffixWrong = "unable to parse quantity's suffix";
constexpr std::string_view kNumberWrong = "unable to parse numeric part of quantity";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Int128 DividedAwayFromZero(Int128 value, Int128 divisor) {
  Int128 quotient = value / divisor;
  if (value % divisor != 0) quotient += value < 0 ? -1 : 1;
  return quotient;
}

int64_t Clamped(Int128 value) {
  using Limits = std::numeric_limits<int64_t>;
  if (value > Limits::max()) return Limits::max();
  if (value < Limits::min()) return Limits::min();
  return static_cast<int64_t>(value);
}

std::string Digits(Int128 value) {
  if (value == 0) return "0";
  bool negative = value < 0;
  std::string out;
  for (Int128 rest = negative ? -value : value; rest != 0; rest /= 10) {
    out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  return negative ? "-" + out : out;
}

struct Suffix {
  Amount::Format format = Amount::Format::kDecimalSI;
  int power = 0;  // of 10, or of 2 with kBinarySI
};

bool ReadSuffix(std::string_view text, Suffix& suffix) {
  for (size_t i = 0; i < std::size(kDecimalSuffixes); ++i) {
    if (text == kDecimalSuffixes[i]) {
      suffix = {Amount::Format::kDecimalSI, static_cast<int>(i) * 3 - 9};
      return true;
    }
  }
  for (size_t i = 1; i < std::size(kBinarySuffixes); ++i) {
    if (text == kBinarySuffixes[i]) {
      suffix = {Amount::Format::kBinarySI, static_cast<int>(i) * 10};
      return true;
    }
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  std::string_view digits = text.substr(1);
  bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  int power = 0;
  for (char c : digits) {
    if (!IsDigit(c)) return false;
    if (power < 10'000) power = power * 10 + (c - '0');
  }
  if (digits.empty()) return false;
  suffix = {Amount::Format::kDecimalExponent, negative ? -power : power};
  return true;
}

// |number| in nanos, rounded up and capped. `whole` and `fraction` hold only digits.
Int128 Nanos(std::string_view whole, std::string_view fraction, const Suffix& suffix) {
  while (!whole.empty() && whole.front() == '0') whole.remove_prefix(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (whole.empty() && fraction.empty()) return 0;
  if (suffix.format == Amount::Format::kBinarySI) {
    if (whole.size() > 19) return kMax;
    Int128 scale = Int128{1} << suffix.power, integer = 0, part = 0, ten = 1;
    for (char c : whole) integer = integer * 10 + (c - '0');
    if (integer > kMax / kNano / scale) return kMax;
    bool inexact = fraction.size() > 18;
    for (char c : fraction.substr(0, 18)) part = part * 10 + (c - '0'), ten *= 10;
    Int128 scaled = part * scale, quotient = scaled / ten, rest = scaled % ten * kNano;
    Int128 nanos = integer * scale * kNano + quotient * kNano + rest / ten;
    if (rest % ten != 0 || inexact) ++nanos;
    return nanos > kMax ? kMax : nanos;
  }
  // Decimal: move the point, then cut after the ninth place.
  std::string digits = std::string(whole) + std::string(fraction);
  int places = 9 + suffix.power - static_cast<int>(fraction.size());  // digits to append, or to cut
  size_t zeros = digits.find_first_not_of('0');
  digits.erase(0, zeros);
  if (static_cast<int>(digits.size()) + places > 30) return kMax;
  Int128 nanos = 0;
  bool inexact = false;
  int keep = static_cast<int>(digits.size()) + (places < 0 ? places : 0);
  for (int i = 0; i < static_cast<int>(digits.size()); ++i) {
    if (i < keep) {
      nanos = nanos * 10 + (digits[i] - '0');
    } else {
      inexact = inexact || digits[i] != '0';
    }
  }
  for (int i = 0; i < places; ++i) nanos *= 10;
  if (inexact) ++nanos;
  return nanos > kMax ? kMax : nanos;
}

}  // namespace

Result<Amount> Amount::Parse(std::string_view text) {
  auto wrong = [](std::string_view why) { return Error(Code::kBadRequest, std::string(why)); };
  if (text.empty()) return wrong(kFormatWrong);
  std::string_view rest = text;
  bool negative = rest[0] == '-';
  if (negative || rest[0] == '+') rest.remove_prefix(1);
  size_t whole = 0;
  while (whole < rest.size() && IsDigit(rest[whole])) ++whole;
  size_t end = whole, fraction_start = whole;
  if (whole < rest.size() && rest[whole] == '.') {
    fraction_start = end = whole + 1;
    while (end < rest.size() && IsDigit(rest[end])) ++end;
  }
  if (whole == 0 && end == fraction_start) return wrong(end == 0 ? kFormatWrong : kNumberWrong);
  std::string_view tail = rest.substr(end);
  size_t letters = 0;
  while (letters < tail.size() &&
         std::string_view("eEinumkKMGTP").find(tail[letters]) != std::string_view::npos) {
    ++letters;
  }
  size_t exponent = letters;
  if (exponent < tail.size() && (tail[exponent] == '+' || tail[exponent] == '-')) ++exponent;
  while (exponent < tail.size() && IsDigit(tail[exponent])) ++exponent;
  if (exponent != tail.size()) return wrong(kFormatWrong);
  Suffix suffix;
  if (!ReadSuffix(tail, suffix)) return wrong(kSuffixWrong);
  Amount amount;
  amount.format_ = suffix.format;
  amount.nanos_ = Nanos(rest.substr(0, whole), rest.substr(fraction_start, end - fraction_start), suffix);
  if (negative) amount.nanos_ = -amount.nanos_;
  return amount;
}

Amount Amount::FromInt(int64_t value, Format format) {
  Amount amount;
  amount.nanos_ = Int128{value} * kNano;
  amount.format_ = format;
  return amount;
}

Amount Amount::FromMilli(int64_t milli) {
  Amount amount;
  amount.nanos_ = Int128{milli} * 1'000'000;
  return amount;
}

Amount Amount::Of(const resource::Quantity& quantity) {
  auto amount = Parse(quantity.string());
  return amount ? *amount : Amount();
}

int64_t Amount::Value() const { return Clamped(DividedAwayFromZero(nanos_, kNano)); }
int64_t Amount::MilliValue() const { return Clamped(DividedAwayFromZero(nanos_, 1'000'000)); }
double Amount::ToDouble() const { return static_cast<double>(nanos_) / kNano; }

std::string Amount::ToString() const {
  if (nanos_ == 0) return "0";
  // Small amounts are never printed in binary units, which would round them.
  bool small = nanos_ > Int128{-1024} * kNano && nanos_ < Int128{1024} * kNano;
  if (format_ == Format::kBinarySI && !small) {
    Int128 value = DividedAwayFromZero(nanos_, kNano);
    size_t unit = 0;
    while (unit + 1 < std::size(kBinarySuffixes) && value % 1024 == 0) value /= 1024, ++unit;
    return Digits(value) + std::string(kBinarySuffixes[unit]);
  }
  Int128 value = nanos_;
  size_t unit = 0;
  while (unit + 1 < std::size(kDecimalSuffixes) && value % 1000 == 0) value /= 1000, ++unit;
  if (format_ == Format::kDecimalExponent) {
    int power = static_cast<int>(unit) * 3 - 9;
    return power == 0 ? Digits(value) : Digits(value) + "e" + std::to_string(power);
  }
  return Digits(value) + std::string(kDecimalSuffixes[unit]);
}

resource::Quantity Amount::ToQuantity() const {
  resource::Quantity quantity;
  quantity.set_string(ToString());
  return quantity;
}

// The sum keeps the format of the first amount that is not zero.
Amount& Amount::operator+=(const Amount& other) {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ += other.nanos_;
  return *this;
}

Amount& Amount::operator-=(const Amount& other) {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ -= other.nanos_;
  return *this;
}

std::strong_ordering Amount::operator<=>(const Amount& other) const {
  if (nanos_ == other.nanos_) return std::strong_ordering::equal;
  return nanos_ < other.nanos_ ? std::strong_ordering::less : std::strong_ordering::greater;
}

}  // namespace keelson::api
