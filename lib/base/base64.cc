#include "lib/base/base64.h"

#include <array>
#include <cstdint>

namespace keelson {
namespace {

constexpr std::string_view kStdDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

using Values = std::array<int8_t, 256>;

constexpr Values ValuesOf(std::string_view digits) {
  Values values{};
  for (auto& value : values) value = -1;
  for (size_t i = 0; i < digits.size(); ++i) values[static_cast<uint8_t>(digits[i])] = static_cast<int8_t>(i);
  return values;
}
constexpr Values kStdValues = ValuesOf(kStdDigits), kUrlValues = ValuesOf(kUrlDigits);

bool IsUrl(Base64 form) { return form == Base64::kUrl || form == Base64::kRawUrl; }
bool IsPadded(Base64 form) { return form == Base64::kStd || form == Base64::kUrl; }

Error Illegal(size_t at) {
  return Error(Code::kBadRequest, "illegal base64 data at input byte " + std::to_string(at));
}

}  // namespace

void EncodeBase64To(char* out, std::string_view bytes, Base64 form) {
  const std::string_view digits = IsUrl(form) ? kUrlDigits : kStdDigits;
  size_t i = 0;
  const auto at = [&](size_t index) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[index])); };
  for (; i + 2 < bytes.size(); i += 3) {
    const uint32_t group = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) *out++ = digits[group >> shift & 63];
  }
  const size_t left = bytes.size() - i;
  if (left == 0) return;
  const uint32_t group = at(i) << 16 | (left == 2 ? at(i + 1) << 8 : 0);
  *out++ = digits[group >> 18 & 63];
  *out++ = digits[group >> 12 & 63];
  if (left == 2) *out++ = digits[group >> 6 & 63];
  if (!IsPadded(form)) return;
  if (left == 1) *out++ = '=';
  *out++ = '=';
}

std::string EncodeBase64(std::string_view bytes, Base64 form) {
  std::string out(Base64Size(bytes.size(), form), '\0');
  EncodeBase64To(out.data(), bytes, form);
  return out;
}

Result<size_t> DecodeBase64To(char* out, std::string_view text, Base64 form, std::string_view ignored) {
  const Values& values = IsUrl(form) ? kUrlValues : kStdValues;
  const char* const begin = out;
  uint32_t group = 0;
  int have = 0;
  size_t i = 0, last = 0;  // `last`: the place of the last digit
  for (; i < text.size(); ++i) {
    const int8_t value = values[static_cast<uint8_t>(text[i])];
    if (value < 0) {
      if (ignored.find(text[i]) != std::string_view::npos) continue;
      if (text[i] == '=' && IsPadded(form)) break;
      return Illegal(i);
    }
    last = i;
    group = group << 6 | static_cast<uint32_t>(value);
    if (++have < 4) continue;
    *out++ = static_cast<char>(group >> 16);
    *out++ = static_cast<char>(group >> 8);
    *out++ = static_cast<char>(group);
    have = 0;
    group = 0;
  }
  if (have == 0 && i == text.size()) return static_cast<size_t>(out - begin);
  if (have < 2) return Illegal(IsPadded(form) ? i : last);
  int padding = 0;
  for (; i < text.size(); ++i) {
    if (ignored.find(text[i]) != std::string_view::npos) continue;
    if (text[i] != '=' || ++padding > 4 - have) return Illegal(i);
  }
  if (IsPadded(form) && padding != 4 - have) return Illegal(text.size());
  *out++ = static_cast<char>(group >> (have == 2 ? 4 : 10));
  if (have == 3) *out++ = static_cast<char>(group >> 2);
  return static_cast<size_t>(out - begin);
}

Result<std::string> DecodeBase64(std::string_view text, Base64 form, std::string_view ignored) {
  std::string out(text.size() / 4 * 3 + 3, '\0');
  KEELSON_ASSIGN_OR_RETURN(const size_t size, DecodeBase64To(out.data(), text, form, ignored));
  out.resize(size);
  return out;
}

}  // namespace keelson
