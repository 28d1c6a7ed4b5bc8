#include "lib/k8s/int_or_string.h"

#include <charconv>

namespace keelson::k8s {

// Zero values stay absent, as the canonical form requires (lib/api/codec/codec.h).
intstr::IntOrString FromInt(int32_t value) {
  intstr::IntOrString out;
  if (value != 0) out.set_int_val(value);
  return out;
}

intstr::IntOrString FromString(std::string_view value) {
  intstr::IntOrString out;
  out.set_type(1);
  if (!value.empty()) out.set_str_val(std::string(value));
  return out;
}

bool IsString(const intstr::IntOrString& value) { return value.type() == 1; }

std::string ToString(const intstr::IntOrString& value) {
  return IsString(value) ? value.str_val() : std::to_string(value.int_val());
}

Result<int64_t> ScaledValue(const intstr::IntOrString& value, int64_t total, bool round_up) {
  if (!IsString(value)) return static_cast<int64_t>(value.int_val());
  const std::string& text = value.str_val();
  int64_t percent = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, percent);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end - 1 || *parsed.ptr != '%') {
    return Error(Code::kInvalid, "invalid value for IntOrString: invalid type: string is not a percentage");
  }
  const int64_t product = percent * total;
  return round_up ? (product + 99) / 100 : product / 100;
}

}  // namespace keelson::k8s
