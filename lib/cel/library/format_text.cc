#include "lib/cel/library/format_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "lib/cel/functions/format_clause.h"
#include "lib/cel/library/utf8.h"

namespace keelson::cel {
namespace {

Error Bad(std::string message) { return Error(Code::kBadRequest, std::move(message)); }

Error WrongType(char verb, const Value& value) {
  return Bad(fmt::format("error during formatting: {}, was given {}", TakenByClause(verb), TypeName(value)));
}

// Go's %q.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    constexpr std::string_view kSpecial = "\a\b\f\n\r\t\v\\\"", kNames = "abfnrtv\\\"";
    size_t special = c == '\0' ? std::string_view::npos : kSpecial.find(c);
    if (special != std::string_view::npos) {
      out.append("\\").append(1, kNames[special]);
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Result<std::string> Literal(const Value& value, Arena& arena);

Result<std::string> ListText(const ListValue& list, Arena& arena) {
  std::string out = "[";
  for (size_t i = 0; i < list.Size(); ++i) {
    KEELSON_ASSIGN_OR_RETURN(std::string item, Literal(list.At(i, arena), arena));
    out.append(i > 0 ? ", " : "").append(item);
  }
  return out + "]";
}

Result<std::string> MapText(const MapValue& map, Arena& arena) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (size_t i = 0; i < map.Size(); ++i) {
    KEELSON_ASSIGN_OR_RETURN(std::string key, Literal(map.KeyAt(i, arena), arena));
    KEELSON_ASSIGN_OR_RETURN(std::string value, Literal(map.ValueAt(i, arena), arena));
    entries.emplace_back(std::move(key), std::move(value));
  }
  std::sort(entries.begin(), entries.end());
  std::string out = "{";
  for (size_t i = 0; i < entries.size(); ++i) {
    out.append(i > 0 ? ", " : "").append(entries[i].first).append(":").append(entries[i].second);
  }
  return out + "}";
}

// As it stands inside of a list or map: a literal of CEL.
Result<std::string> Literal(const Value& value, Arena& arena) {
  switch (value.kind()) {
    case ValueKind::kString:
      return Quoted(value.text());
    case ValueKind::kBytes:
      return "b" + Quoted(value.text());
    case ValueKind::kTimestamp:
      return fmt::format("timestamp({})", Quoted(ToText(value)));
    case ValueKind::kDuration:
      return fmt::format("duration({})", Quoted(ToText(value)));
    case ValueKind::kDouble: {
      if (!std::isfinite(value.as_double())) return Quoted(FormatDouble(value.as_double()));
      return fmt::format("{:.6f}", value.as_double());
    }
    case ValueKind::kList:
      return ListText(value.list(), arena);
    case ValueKind::kMap:
      return MapText(value.map(), arena);
    case ValueKind::kNull:
    case ValueKind::kBool:
    case ValueKind::kInt:
    case ValueKind::kUint:
    case ValueKind::kType:
      return ToText(value);
    default:
      return Bad(fmt::format("error during formatting: no formatting function for {}", TypeName(value)));
  }
}

Result<std::string> StringClause(const Value& value, Arena& arena) {
  switch (value.kind()) {
    case ValueKind::kList:
      return ListText(value.list(), arena);
    case ValueKind::kMap:
      return MapText(value.map(), arena);
    case ValueKind::kBytes:
      if (!IsUtf8(value.text())) return Bad("error during formatting: could not convert argument to string");
      return std::string(value.text());
    case ValueKind::kObject:
    case ValueKind::kOptional:
    case ValueKind::kOpaque:
    case ValueKind::kError:
      return WrongType('s', value);
    default:
      return ToText(value);
  }
}

Result<double> Number(const Value& value, char verb) {
  if (value.Is(ValueKind::kDouble)) return value.as_double();
  if (value.Is(ValueKind::kString)) {
    if (value.text() == "NaN") return std::nan("");
    if (value.text() == "Infinity") return HUGE_VAL;
    if (value.text() == "-Infinity") return -HUGE_VAL;
  }
  return WrongType(verb, value);
}

std::string NonFinite(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "∞" : "-∞"; }

Result<std::string> FixedClause(const Value& value, int precision) {
  KEELSON_ASSIGN_OR_RETURN(double number, Number(value, 'f'));
  if (!std::isfinite(number)) return NonFinite(number);
  std::string text = fmt::format("{:.{}f}", number, precision);
  size_t first = text[0] == '-' ? 1 : 0, end = std::min(text.find('.'), text.size());
  for (size_t at = end; at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

Result<std::string> ScientificClause(const Value& value, int precision) {
  KEELSON_ASSIGN_OR_RETURN(double number, Number(value, 'e'));
  if (!std::isfinite(number)) return NonFinite(number);
  std::string text = fmt::format("{:.{}e}", number, precision);
  size_t e = text.find('e');
  constexpr std::string_view kSuperscripts[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = text.substr(0, e) + "\u202f×\u202f10";
  for (char c : text.substr(e + 1)) {
    if (c == '-') out += "⁻";
    if (c >= '0' && c <= '9') out += kSuperscripts[c - '0'];
  }
  return out;
}

template <int kBase>
std::string InBase(const Value& value) {
  char text[72];
  auto end = value.Is(ValueKind::kInt) ? std::to_chars(text, text + sizeof(text), value.as_int(), kBase).ptr
                                       : std::to_chars(text, text + sizeof(text), value.as_uint(), kBase).ptr;
  return std::string(text, end);
}

bool IsInteger(const Value& value) { return value.Is(ValueKind::kInt) || value.Is(ValueKind::kUint); }

Result<std::string> HexClause(const Value& value, bool upper) {
  std::string out;
  if (IsInteger(value)) {
    out = InBase<16>(value);
  } else if (value.Is(ValueKind::kString) || value.Is(ValueKind::kBytes)) {
    for (char c : value.text()) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  } else {
    return WrongType('x', value);
  }
  if (upper) {
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c; });
  }
  return out;
}

Result<std::string> Clause(const FormatClause& clause, const Value& value, Arena& arena) {
  switch (clause.verb) {
    case 's':
      return StringClause(value, arena);
    case 'd':
      if (IsInteger(value)) return ToText(value);
      break;
    case 'f':
      return FixedClause(value, clause.precision);
    case 'e':
      return ScientificClause(value, clause.precision);
    case 'b':
      if (value.Is(ValueKind::kBool)) return std::string(value.as_bool() ? "1" : "0");
      if (IsInteger(value)) return InBase<2>(value);
      break;
    case 'o':
      if (IsInteger(value)) return InBase<8>(value);
      break;
    default:
      return HexClause(value, clause.verb == 'X');
  }
  return WrongType(clause.verb, value);
}

}  // namespace

Result<std::string> FormatText(std::string_view format, const ListValue& args, Arena& arena) {
  std::string out;
  size_t next = 0;
  for (std::string_view rest = format; !rest.empty();) {
    if (rest[0] != '%') {
      out += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    if (rest.starts_with("%%")) {
      out += '%';
      rest.remove_prefix(2);
      continue;
    }
    if (next >= args.Size()) return Bad(fmt::format("index {} out of range", next));
    rest.remove_prefix(1);
    KEELSON_ASSIGN_OR_RETURN(const FormatClause clause, TakeFormatClause(rest));
    KEELSON_ASSIGN_OR_RETURN(std::string text, Clause(clause, args.At(next++, arena), arena));
    out += text;
  }
  return out;
}

}  // namespace keelson::cel
