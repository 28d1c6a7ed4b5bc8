#include "kubelet/staticpod/go_quantity.h"

#include <fmt/format.h>

#include <charconv>

namespace keelson::kubelet {

namespace {

constexpr int kMostDigits = 18;  // that 64 bits hold in any case

std::string Print(int64_t value, int scale, std::string_view text, std::string_view format) {
  return fmt::format(
      "{{i:(resource.int64Amount){{value:(int64){} scale:(resource.Scale){}}} "
      "d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){} Format:(resource.Format){}}}",
      value, scale, text, format);
}

std::string_view Digits(std::string_view& rest) {
  size_t count = 0;
  while (count < rest.size() && rest[count] >= '0' && rest[count] <= '9') ++count;
  const std::string_view out = rest.substr(0, count);
  rest.remove_prefix(count);
  return out;
}

// Of a unit: a power of ten, or of two.
std::optional<int> PowerOf(std::string_view unit, bool& binary) {
  static constexpr std::string_view kDecimal = "kMGTPE", kSmall = "mun";
  binary = unit.size() == 2 && unit[1] == 'i';
  if (unit.empty()) return 0;
  const size_t large = unit[0] == 'K' && binary ? 0 : kDecimal.find(unit[0]);
  if (binary) {
    return large == std::string_view::npos ? std::nullopt : std::optional<int>(10 * (int(large) + 1));
  }
  if (unit.size() == 1 && large != std::string_view::npos) return 3 * (int(large) + 1);
  if (unit.size() == 1 && kSmall.find(unit[0]) != std::string_view::npos) {
    return -3 * (int(kSmall.find(unit[0])) + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> PrintGoQuantity(std::string_view text) {
  if (text == "0") return Print(0, 0, "0", "");
  std::string_view rest = text;
  std::string_view whole = Digits(rest), fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = Digits(rest);
  }
  while (whole.size() > 1 && whole[0] == '0') whole.remove_prefix(1);
  bool binary = false;
  const std::optional<int> power = PowerOf(rest, binary);
  const std::string digits = std::string(whole) + std::string(fraction);
  if (!power || digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!binary) {
    const int scale = *power - static_cast<int>(fraction.size());
    if (scale < -3) return std::nullopt;
    return Print(value, scale, text, "DecimalSI");
  }
  if (!fraction.empty() || 15 - static_cast<int>(whole.size()) - *power * 3 / 10 - 1 < 0) return std::nullopt;
  return Print(value << *power, 0, text, "BinarySI");
}

std::optional<std::string> PrintGoZeroQuantity() { return Print(0, 0, "", ""); }

}  // namespace keelson::kubelet
