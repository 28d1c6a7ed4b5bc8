// cel-go's string extension. Positions count characters.
#include <algorithm>

#include <fmt/format.h>

#include "lib/cel/library/format_text.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/utf8.h"
#include "lib/cel/syntax/literal.h"
#include "lib/cel/syntax/source.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

// replace() and join() may ask for more than any object holds; their costs go by what they are given.
constexpr size_t kLargestResult = 64 << 20;

Value OutOfRange(int64_t index, Arena& arena) {
  return Value::Error(fmt::format("index out of range: {}", index), arena);
}

Value Made(std::string_view text, Arena& arena) { return Value::String(arena.Copy(text)); }

Value TooLarge() { return Value::StaticError("result of string function is too large"); }

Value CharAt(Args args, Arena& arena) {
  std::string_view text = args[0].text();
  auto at = ByteOffset(text, args[1].as_int());
  if (!at) return OutOfRange(args[1].as_int(), arena);
  if (*at == text.size()) return Value::String({});
  size_t length;
  DecodeCharacter(text, *at, length);
  return Value::String(text.substr(*at, length));
}

Value CharactersBefore(std::string_view text, size_t byte) {
  return Value::Int(static_cast<int64_t>(CountCodePoints(text.substr(0, byte))));
}

Value StringIndexOf(Args args, Arena& arena) {
  std::string_view text = args[0].text(), wanted = args[1].text();
  int64_t offset = args.size() > 2 ? args[2].as_int() : 0;
  if (wanted.empty()) return Value::Int(offset);
  if (offset < 0) return OutOfRange(offset, arena);
  auto from = ByteOffset(text, offset);
  size_t found = from ? text.find(wanted, *from) : std::string_view::npos;
  return found == std::string_view::npos ? Value::Int(-1) : CharactersBefore(text, found);
}

Value StringLastIndexOf(Args args, Arena& arena) {
  std::string_view text = args[0].text(), wanted = args[1].text();
  if (wanted.empty()) {
    return args.size() > 2 ? args[2] : Value::Int(static_cast<int64_t>(CountCodePoints(text)));
  }
  size_t from = std::string_view::npos;
  if (args.size() > 2) {
    int64_t offset = args[2].as_int();
    if (offset < 0) return OutOfRange(offset, arena);
    auto byte = ByteOffset(text, offset);
    if (!byte || *byte >= text.size()) return Value::Int(-1);
    from = *byte;
  }
  size_t found = text.rfind(wanted, from);
  return found == std::string_view::npos ? Value::Int(-1) : CharactersBefore(text, found);
}

template <char kFirst, char kLast>
Value ChangeCase(Args args, Arena& arena) {
  std::string out(args[0].text());
  for (char& c : out) {
    if (c >= kFirst && c <= kLast) c = static_cast<char>(c ^ 0x20);
  }
  return Made(out, arena);
}

Value Replace(Args args, Arena& arena) {
  std::string_view text = args[0].text(), from = args[1].text(), to = args[2].text();
  int64_t left = args.size() > 3 ? args[3].as_int() : -1;
  std::string out;
  size_t at = 0;
  while (left != 0) {
    size_t found = text.find(from, at);
    if (from.empty()) {
      // Before each character, and behind the last.
      out.append(to);
      if (at >= text.size()) break;
      size_t length;
      DecodeCharacter(text, at, length);
      out.append(text.substr(at, length));
      at += length;
    } else if (found == std::string_view::npos) {
      break;
    } else {
      out.append(text.substr(at, found - at)).append(to);
      at = found + from.size();
    }
    if (out.size() > kLargestResult) return TooLarge();
    if (left > 0) --left;
  }
  out.append(text.substr(std::min(at, text.size())));
  return Made(out, arena);
}

Value Split(Args args, Arena& arena) {
  std::string_view text = args[0].text(), separator = args[1].text();
  int64_t limit = args.size() > 2 ? args[2].as_int() : -1;
  std::vector<Value> parts;
  if (limit == 0) return MakeList(parts, arena);
  size_t at = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) + 1 < limit) {
    size_t end = text.size(), next = text.size();
    if (separator.empty()) {
      if (at >= text.size()) break;
      DecodeCharacter(text, at, end);
      end = next = at + end;
      if (next >= text.size()) break;
    } else {
      end = text.find(separator, at);
      if (end == std::string_view::npos) break;
      next = end + separator.size();
    }
    parts.push_back(Value::String(text.substr(at, end - at)));
    at = next;
  }
  if (!separator.empty() || at < text.size()) parts.push_back(Value::String(text.substr(at)));
  return MakeList(parts, arena);
}

Value Substring(Args args, Arena& arena) {
  std::string_view text = args[0].text();
  int64_t start = args[1].as_int();
  if (args.size() > 2 && start > args[2].as_int()) {
    return Value::Error(fmt::format("invalid substring range. start: {}, end: {}", start, args[2].as_int()),
                        arena);
  }
  auto from = ByteOffset(text, start);
  if (!from) return OutOfRange(start, arena);
  auto to = args.size() > 2 ? ByteOffset(text, args[2].as_int()) : text.size();
  if (!to) return OutOfRange(args[2].as_int(), arena);
  return Value::String(text.substr(*from, *to - *from));
}

// What Go's unicode.IsSpace() knows.
bool IsSpace(uint32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

Value Trim(Args args, Arena&) {
  std::string_view text = args[0].text();
  size_t begin = text.size(), end = 0;
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    if (IsSpace(DecodeCharacter(text, at, length))) continue;
    begin = std::min(begin, at);
    end = at + length;
  }
  return Value::String(begin < end ? text.substr(begin, end - begin) : std::string_view());
}

Value Format(Args args, Arena& arena) {
  auto text = FormatText(args[0].text(), args[1].list(), arena);
  return text ? Made(*text, arena) : Value::Error(text.error().message(), arena);
}

Value Quote(Args args, Arena& arena) {
  std::string_view text = args[0].text();
  std::string out = "\"";
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    uint32_t c = DecodeCharacter(text, at, length);
    constexpr std::string_view kSpecial = "\a\b\f\n\r\t\v\\\"", kNames = "abfnrtv\\\"";
    size_t special = c < 0x80 && c != 0 ? kSpecial.find(static_cast<char>(c)) : std::string_view::npos;
    if (special != std::string_view::npos) {
      out.append("\\").append(1, kNames[special]);
    } else {
      AppendUtf8(out, c);
    }
  }
  return Made(out + "\"", arena);
}

Value Join(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  std::string_view separator = args.size() > 1 ? args[1].text() : std::string_view();
  std::string out;
  for (size_t i = 0; i < list.Size(); ++i) {
    Value item = list.At(i, arena);
    if (item.IsError()) return item;
    if (!item.Is(ValueKind::kString)) return Value::StaticError("no such overload");
    if (i > 0) out.append(separator);
    out.append(item.text());
    if (out.size() > kLargestResult) return TooLarge();
  }
  return Made(out, arena);
}

constexpr CostRule kTransform = CostRule::kTransformText, kTraverse = CostRule::kTraverseList;

const FunctionRow kStringRows[] = {
    {"charAt", "string_char_at_int", "string", "int", "string", 0, CharAt},
    {"indexOf", "string_index_of_string", "string", "string", "int", 0, StringIndexOf, kTraverse},
    {"indexOf", "string_index_of_string_int", "string", "string,int", "int", 0, StringIndexOf, kTraverse},
    {"lastIndexOf", "string_last_index_of_string", "string", "string", "int", 0, StringLastIndexOf,
     kTraverse},
    {"lastIndexOf", "string_last_index_of_string_int", "string", "string,int", "int", 0, StringLastIndexOf,
     kTraverse},
    {"lowerAscii", "string_lower_ascii", "string", "", "string", 0, ChangeCase<'A', 'Z'>, kTransform},
    {"replace", "string_replace_string_string", "string", "string,string", "string", 0, Replace,
     CostRule::kReplace},
    {"replace", "string_replace_string_string_int", "string", "string,string,int", "string", 0, Replace,
     CostRule::kReplace},
    {"split", "string_split_string", "string", "string", "list<string>", 0, Split, CostRule::kSplit},
    {"split", "string_split_string_int", "string", "string,int", "list<string>", 0, Split, CostRule::kSplit},
    {"substring", "string_substring_int", "string", "int", "string", 0, Substring, kTransform},
    {"substring", "string_substring_int_int", "string", "int,int", "string", 0, Substring, kTransform},
    {"trim", "string_trim", "string", "", "string", 0, Trim, kTransform},
    {"upperAscii", "string_upper_ascii", "string", "", "string", 0, ChangeCase<'a', 'z'>, kTransform},
    {"format", "string_format", "string", "list<dyn>", "string", 29, Format, CostRule::kTraverseFirst},
    {"strings.quote", "strings_quote", "", "string", "string", 29, Quote, CostRule::kTraverseFirst},
    {"join", "list_join", "list<string>", "", "string", 29, Join, CostRule::kJoin},
    {"join", "list_join_string", "list<string>", "string", "string", 29, Join, CostRule::kJoin},
};

}  // namespace

std::span<const FunctionRow> StringFunctions() { return kStringRows; }

}  // namespace keelson::cel
