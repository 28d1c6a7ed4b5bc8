#include "lib/cel/syntax/literal.h"

#include <charconv>

namespace keelson::cel {
namespace {

constexpr uint32_t kLastCodePoint = 0x10FFFF;

Error Bad() { return Error(Code::kBadRequest, "unable to unescape string"); }

std::string NormalizeNewlines(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

char SimpleEscape(char c) {
  switch (c) {
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
    case '`':
    case '?':
      return c;
    default:
      return 0;
  }
}

// Reads the escape sequence at the start of `rest`, behind its backslash.
Result<> Unescape(std::string_view& rest, bool bytes, std::string& out) {
  if (rest.empty()) {
    return Error(Code::kBadRequest, "unable to unescape string, found '\\' as last character");
  }
  char c = rest[0];
  if (char simple = SimpleEscape(c)) {
    out += simple;
    rest.remove_prefix(1);
    return {};
  }
  bool octal = c >= '0' && c <= '3';
  size_t digits = octal ? 3 : c == 'u' ? 4 : c == 'U' ? 8 : c == 'x' || c == 'X' ? 2 : 0;
  if (digits == 0 || (bytes && (c == 'u' || c == 'U'))) return Bad();
  std::string_view number = rest.substr(octal ? 0 : 1, digits);
  uint32_t value = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value, octal ? 8 : 16);
  if (number.size() != digits || error != std::errc() || end != number.data() + number.size()) return Bad();
  rest.remove_prefix(octal ? 3 : digits + 1);
  if (bytes) {
    out += static_cast<char>(value);
  } else if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
    return Bad();
  } else {
    AppendUtf8(out, value);
  }
  return {};
}

}  // namespace

void AppendUtf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

Result<std::string> UnquoteLiteral(std::string_view literal, bool bytes) {
  bool raw = !literal.empty() && (literal[0] == 'r' || literal[0] == 'R');
  if (raw) literal.remove_prefix(1);
  size_t quotes =
      literal.size() >= 6 && (literal.starts_with("'''") || literal.starts_with("\"\"\"")) ? 3 : 1;
  if (literal.size() < 2 * quotes) return Bad();
  std::string text(literal.substr(quotes, literal.size() - 2 * quotes));
  if (text.find('\r') != std::string::npos) text = NormalizeNewlines(text);
  if (raw || text.find('\\') == std::string::npos) return text;
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    char c = rest[0];
    rest.remove_prefix(1);
    if (c != '\\') {
      out += c;
      continue;
    }
    KEELSON_RETURN_IF_ERROR(Unescape(rest, bytes, out));
  }
  return out;
}

std::optional<uint64_t> ParseUintLiteral(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseIntLiteral(std::string_view text, bool negative) {
  auto magnitude = ParseUintLiteral(text);
  if (!magnitude || *magnitude > static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0)) return std::nullopt;
  return negative ? static_cast<int64_t>(-*magnitude) : static_cast<int64_t>(*magnitude);
}

std::optional<double> ParseDoubleLiteral(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace keelson::cel
