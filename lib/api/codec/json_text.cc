#include "lib/api/codec/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"

namespace keelson::api {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The role of a byte inside a string: plain, the end or an escape, the start of a sequence, or HTML.
enum ByteClass : uint8_t { kPlain, kSpecial, kMultibyte, kHtml };
constexpr std::array<uint8_t, 256> ByteClasses() {
  std::array<uint8_t, 256> classes{};
  for (int i = 0; i < 256; ++i) classes[i] = i < 0x20 ? kSpecial : i >= 0x80 ? kMultibyte : kPlain;
  classes['"'] = classes['\\'] = kSpecial;
  classes['<'] = classes['>'] = classes['&'] = kHtml;
  return classes;
}
constexpr std::array<uint8_t, 256> kByteClasses = ByteClasses();

uint8_t ClassOf(char c) { return kByteClasses[static_cast<uint8_t>(c)]; }

// Length of the valid UTF-8 sequence at p, or 0.
size_t SequenceLength(const char* p, const char* end) {
  auto byte = [&](int i) { return static_cast<uint8_t>(p[i]); };
  auto tail = [&](int i) { return p + i < end && (byte(i) & 0xc0) == 0x80; };
  uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if ((lead & 0xf0) == 0xe0) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    if (lead == 0xed && byte(1) > 0x9f) return 0;  // surrogates
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

void AppendUtf8(uint32_t rune, std::string& out) {
  if (rune < 0x80) {
    out += static_cast<char>(rune);
  } else if (rune < 0x800) {
    out += static_cast<char>(0xc0 | rune >> 6);
    out += static_cast<char>(0x80 | (rune & 63));
  } else if (rune < 0x10000) {
    out += static_cast<char>(0xe0 | rune >> 12);
    out += static_cast<char>(0x80 | (rune >> 6 & 63));
    out += static_cast<char>(0x80 | (rune & 63));
  } else {
    out += static_cast<char>(0xf0 | rune >> 18);
    out += static_cast<char>(0x80 | (rune >> 12 & 63));
    out += static_cast<char>(0x80 | (rune >> 6 & 63));
    out += static_cast<char>(0x80 | (rune & 63));
  }
}

bool ReadHex(const char* p, const char* end, uint32_t& value) {
  if (end - p < 4) return false;
  auto [stop, error] = std::from_chars(p, p + 4, value, 16);
  return error == std::errc() && stop == p + 4;
}

bool IsLineSeparator(const char* p) {  // U+2028 or U+2029, known to be a sequence of three
  return p[0] == '\xe2' && p[1] == '\x80' && (p[2] == '\xa8' || p[2] == '\xa9');
}

// Writes the escape of a character that must not appear as it is.
void AppendEscape(char c, Sink& out) {
  switch (c) {
    case '"':
      return out.Append("\\\"");
    case '\\':
      return out.Append("\\\\");
    case '\n':
      return out.Append("\\n");
    case '\r':
      return out.Append("\\r");
    case '\t':
      return out.Append("\\t");
    case '\b':
      return out.Append("\\b");
    case '\f':
      return out.Append("\\f");
  }
  out.Append("\\u00");
  out.Put(kHex[static_cast<uint8_t>(c) >> 4]);
  out.Put(kHex[static_cast<uint8_t>(c) & 15]);
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    if (static_cast<signed char>(*p) >= 0) {
      ++p;
      continue;
    }
    size_t length = SequenceLength(p, end);
    if (length == 0) return false;
    p += length;
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const size_t length = static_cast<signed char>(*p) >= 0 ? 1 : SequenceLength(p, end);
    if (length == 0) {
      out += kReplacement;
      ++p;
    } else {
      out.append(p, length);
      p += length;
    }
  }
  return out;
}

char JsonReader::PeekSlow() {
  if (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) {
    if (copy_) copy_->Append(Since(mark_));
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_;
    mark_ = p_;
  }
  return p_ < end_ ? *p_ : 0;
}

bool JsonReader::Unexpected(std::string_view context) {
  if (p_ >= end_) return Fail("unexpected end of JSON input");
  std::string shown;
  auto c = static_cast<uint8_t>(*p_);
  if (c == '\'') {
    shown = "'\\''";
  } else if (c == '"') {
    shown = "'\"'";
  } else if (c >= 0x20 && c < 0x7f) {
    shown = fmt::format("'{}'", *p_);
  } else {
    shown = c == '\n' ? "'\\n'" : c == '\t' ? "'\\t'" : c == '\r' ? "'\\r'" : fmt::format("'\\x{:02x}'", c);
  }
  return Fail("invalid character " + shown + " " + std::string(context));
}

bool JsonReader::String(std::string_view& text) {
  if (!Take('"')) return Unexpected("looking for beginning of value");
  const char* start = p_;
  while (p_ < end_) {
    uint8_t kind = ClassOf(*p_);
    if (kind == kPlain || kind == kHtml) {
      ++p_;
      continue;
    }
    size_t length = kind == kMultibyte ? SequenceLength(p_, end_) : 0;
    if (length == 0) break;
    p_ += length;
  }
  if (p_ < end_ && *p_ == '"') {
    text = Since(start);
    ++p_;
    return true;
  }
  return StringSlow(start, text);
}

// Continues a string at the first character that is not plain.
bool JsonReader::StringSlow(const char* start, std::string_view& text) {
  scratch_.assign(start, p_);
  while (p_ < end_) {
    auto c = static_cast<uint8_t>(*p_);
    if (c == '"') {
      ++p_;
      text = scratch_;
      return true;
    }
    if (c == '\\') {
      ++p_;
      if (!Escape()) return false;
    } else if (c < 0x20) {
      return Unexpected("in string literal");
    } else if (c < 0x80) {
      scratch_ += *p_++;
    } else if (size_t length = SequenceLength(p_, end_); length != 0) {
      scratch_.append(p_, length);
      p_ += length;
    } else {
      scratch_ += kReplacement;
      ++p_;
    }
  }
  return Unexpected("");
}

bool JsonReader::Escape() {
  if (p_ >= end_) return Unexpected("");
  switch (*p_) {
    case '"':
    case '\\':
    case '/':
      scratch_ += *p_++;
      return true;
    case 'b':
      scratch_ += '\b';
      ++p_;
      return true;
    case 'f':
      scratch_ += '\f';
      ++p_;
      return true;
    case 'n':
      scratch_ += '\n';
      ++p_;
      return true;
    case 'r':
      scratch_ += '\r';
      ++p_;
      return true;
    case 't':
      scratch_ += '\t';
      ++p_;
      return true;
    case 'u':
      break;
    default:
      return Unexpected("in string escape code");
  }
  uint32_t rune, low;
  if (!ReadHex(++p_, end_, rune)) {
    while (p_ < end_ && std::isxdigit(static_cast<uint8_t>(*p_))) ++p_;
    return Unexpected("in \\u hexadecimal character escape");
  }
  p_ += 4;
  if (rune >= 0xd800 && rune < 0xdc00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u' &&
      ReadHex(p_ + 2, end_, low) && low >= 0xdc00 && low < 0xe000) {
    rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
    p_ += 6;
  }
  if (rune >= 0xd800 && rune < 0xe000) rune = 0xfffd;  // a lone surrogate
  AppendUtf8(rune, scratch_);
  return true;
}

bool JsonReader::Number(std::string_view& text) {
  Peek();
  const char* start = p_;
  auto digit = [&] { return p_ < end_ && *p_ >= '0' && *p_ <= '9'; };
  if (p_ < end_ && *p_ == '-') ++p_;
  if (!digit()) return Unexpected(p_ == start ? "looking for beginning of value" : "in numeric literal");
  if (*p_ == '0') {
    ++p_;
  } else {
    while (digit()) ++p_;
  }
  if (p_ < end_ && *p_ == '.') {
    ++p_;
    if (!digit()) return Unexpected("after decimal point in numeric literal");
    while (digit()) ++p_;
  }
  if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
    ++p_;
    if (p_ < end_ && (*p_ == '+' || *p_ == '-')) ++p_;
    if (!digit()) return Unexpected("in exponent of numeric literal");
    while (digit()) ++p_;
  }
  text = Since(start);
  return true;
}

bool JsonReader::Literal(std::string_view word) {
  Peek();
  for (char c : word) {
    if (p_ >= end_ || *p_ != c) return Unexpected(fmt::format("in literal {} (expecting '{}')", word, c));
    ++p_;
  }
  return true;
}

bool JsonReader::Name(std::string_view& name) {
  if (Peek() != '"') return Unexpected("looking for beginning of object key string");
  if (!String(name)) return false;
  return Take(':') || Unexpected("after object key");
}

bool JsonReader::Next(char close, std::string_view context, bool& more) {
  char c = Peek();
  if (c != ',' && c != close) return Unexpected(context);
  ++p_;
  more = c == ',';
  return true;
}

bool JsonReader::Skip(int depth) {
  if (depth > kMaxJsonDepth) return TooDeep();
  std::string_view text;
  bool more = true;
  switch (Peek()) {
    case '"':
      return String(text);
    case 't':
      return Literal("true");
    case 'f':
      return Literal("false");
    case 'n':
      return Literal("null");
    case '{':
      ++p_;
      if (Take('}')) return true;
      while (more) {
        if (!Name(text) || !Skip(depth + 1) || !Next('}', "after object key:value pair", more)) return false;
      }
      return true;
    case '[':
      ++p_;
      if (Take(']')) return true;
      while (more) {
        if (!Skip(depth + 1) || !Next(']', "after array element", more)) return false;
      }
      return true;
    default:
      return Number(text);
  }
}

bool JsonReader::Copy(Sink& out, int depth) {
  Peek();
  copy_ = &out;
  mark_ = p_;
  bool good = Skip(depth);
  if (good) out.Append(Since(mark_));
  copy_ = nullptr;
  return good;
}

void AppendQuoted(std::string_view text, Sink& out) {
  out.Put('"');
  const char *p = text.data(), *end = p + text.size(), *run = p;
  auto flush = [&](size_t skip) {
    out.Append({run, static_cast<size_t>(p - run)});
    p += skip;
    run = p;
  };
  while (p < end) {
    uint8_t kind = ClassOf(*p);
    if (kind == kPlain) {
      ++p;
    } else if (kind != kMultibyte) {
      char c = *p;
      flush(1);
      AppendEscape(c, out);
    } else if (size_t length = SequenceLength(p, end); length == 0) {
      flush(1);
      out.Append("\\ufffd");
    } else if (length == 3 && IsLineSeparator(p)) {
      char last = p[2];
      flush(3);
      out.Append(last == '\xa8' ? "\\u2028" : "\\u2029");
    } else {
      p += length;
    }
  }
  flush(0);
  out.Put('"');
}

void AppendCompact(std::string_view json, Sink& out) {
  JsonReader reader(json);
  if (!reader.Skip(0) || !reader.AtEnd()) return out.Append("null");
  const char *p = json.data(), *end = p + json.size(), *run = p;
  auto flush = [&](size_t skip) {
    out.Append({run, static_cast<size_t>(p - run)});
    p += skip;
    run = p;
  };
  bool in_string = false;
  while (p < end) {
    char c = *p;
    if (!in_string) {
      in_string = c == '"';
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        flush(1);
      } else {
        ++p;
      }
    } else if (c == '\\') {
      p += 2;
    } else if (ClassOf(c) == kHtml) {
      flush(1);
      AppendEscape(c, out);
    } else if (c == '\xe2' && end - p >= 3 && IsLineSeparator(p)) {
      char last = p[2];
      flush(3);
      out.Append(last == '\xa8' ? "\\u2028" : "\\u2029");
    } else {
      in_string = c != '"';
      ++p;
    }
  }
  flush(0);
}

void AppendInt(int64_t value, Sink& out) {
  char* to = out.Room(20);
  out.Advance(static_cast<size_t>(std::to_chars(to, to + 20, value).ptr - to));
}

void AppendDouble(double value, Sink& out) {
  if (!std::isfinite(value)) return out.Append("null");
  double size = std::fabs(value);
  bool exponent = size != 0 && (size < 1e-6 || size >= 1e21);
  char* to = out.Room(400);
  auto [end, error] =
      std::to_chars(to, to + 400, value, exponent ? std::chars_format::scientific : std::chars_format::fixed);
  // Go writes e-9 where C++ writes e-09.
  if (exponent && end - to >= 4 && end[-4] == 'e' && end[-3] == '-' && end[-2] == '0') {
    end[-2] = end[-1];
    --end;
  }
  out.Advance(static_cast<size_t>(end - to));
}

std::string PrettyJson(std::string_view json) {
  std::string text;
  Sink out(text);
  int depth = 0;
  auto line = [&] {
    out.Put('\n');
    for (int i = 0; i < depth; ++i) out.Append("  ");
  };
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    switch (c) {
      case ' ':
      case '\n':
      case '\t':
      case '\r':
        break;
      case '"': {
        size_t start = i++;
        while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
        out.Append(json.substr(start, i + 1 - start));
        break;
      }
      case '{':
      case '[': {
        size_t next = json.find_first_not_of(" \n\t\r", i + 1);
        out.Put(c);
        if (next != std::string_view::npos && (json[next] == '}' || json[next] == ']')) {
          out.Put(json[next]);
          i = next;
          break;
        }
        ++depth;
        line();
        break;
      }
      case '}':
      case ']':
        --depth;
        line();
        out.Put(c);
        break;
      case ',':
        out.Put(c);
        line();
        break;
      case ':':
        out.Append(": ");
        break;
      default:
        out.Put(c);
    }
  }
  out.Finish();
  return text;
}

}  // namespace keelson::api
