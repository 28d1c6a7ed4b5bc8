#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/request/yaml.h"
#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Words that a YAML 1.1 reader does not take for strings.
bool IsWord(std::string_view text) {
  static const std::set<std::string, std::less<>> kWords = {"y",    "n",     "yes",   "no",    "on", "off",
                                                            "true", "~",     "null",  "false", "<<", "=",
                                                            ".inf", "-.inf", "+.inf", ".nan"};
  return kWords.count(Lower(text)) != 0;
}

// Numbers in any notation, dates and times: prefers quoting in doubt.
bool LooksLikeNumber(std::string_view text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (at < text.size() && text[at] == '.') ++at;
  if (at >= text.size() || !IsDigit(text[at])) return false;
  return text.find_first_not_of("0123456789abcdefABCDEFxXoO+-._:eTZ ") == std::string_view::npos;
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty() || IsWord(text) || LooksLikeNumber(text)) return true;
  if (std::isspace(static_cast<unsigned char>(text.front())) || text.back() == ' ' || text.back() == ':') {
    return true;
  }
  constexpr std::string_view kIndicators = ",[]{}#&*!|>'\"%@`";
  if (kIndicators.find(text.front()) != std::string_view::npos) return true;
  // These start a scalar only if a non-blank follows.
  if (std::string_view("-?:").find(text.front()) != std::string_view::npos &&
      (text.size() == 1 || text[1] == ' ')) {
    return true;
  }
  if (text.substr(0, 3) == "---" || text.substr(0, 3) == "...") return true;
  return text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos;
}

// Characters that need double quotes; includes C1 controls and Unicode line breaks.
bool NeedsEscapes(std::string_view text, bool lines) {
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && !(lines && c == '\n')) || c == 0x7f) return true;
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
    if (c == 0xe2 && text.substr(i, 2) == "\xe2\x80" && i + 2 < text.size() &&
        (text[i + 2] == '\xa8' || text[i + 2] == '\xa9')) {
      return true;
    }
    if (c == 0xef && text.substr(i, 3) == "\xef\xbb\xbf") return true;
  }
  return false;
}

std::string Doubled(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      (out += '\\') += text[i];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if (text.substr(i, 3) == "\xef\xbb\xbf") {
      out += "\\ufeff";
      i += 2;
    } else if (text.substr(i, 3) == "\xe2\x80\xa8" || text.substr(i, 3) == "\xe2\x80\xa9") {
      out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      out += text[i];
    }
  }
  return out + '"';
}

class Writer {
 public:
  void Document(const json::value& value) {
    if (IsBlock(value)) {
      Block(value, 0);
    } else {
      Inline(value, 0);
      out_ += '\n';
    }
  }
  std::string Take() { return std::move(out_); }

 private:
  static bool IsBlock(const json::value& value) {
    if (const json::object* object = value.if_object()) return !object->empty();
    if (const json::array* array = value.if_array()) return !array->empty();
    return false;
  }

  void Indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  // A mapping or a sequence, at the start of a line.
  void Block(const json::value& value, int depth) {
    if (const json::array* array = value.if_array()) return Sequence(*array, depth);
    Mapping(value.get_object(), depth, false);
  }

  // `begun`: the first key continues a line that has begun ("- ").
  void Mapping(const json::object& object, int depth, bool begun) {
    std::vector<const json::key_value_pair*> members;
    members.reserve(object.size());
    for (const auto& member : object) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->key() < b->key(); });
    for (const auto* member : members) {
      if (!std::exchange(begun, false)) Indent(depth);
      out_ += YamlScalar(View(member->key()));
      out_ += ':';
      Value(member->value(), depth);
    }
  }

  // Writes the value of a key.
  void Value(const json::value& value, int depth) {
    if (!IsBlock(value)) {
      out_ += ' ';
      Inline(value, depth + 1);
      out_ += '\n';
      return;
    }
    out_ += '\n';
    Block(value, value.is_array() ? depth : depth + 1);
  }

  void Sequence(const json::array& array, int depth) {
    for (const json::value& item : array) {
      Indent(depth);
      Item(item, depth);
    }
  }

  void Item(const json::value& item, int depth) {
    out_ += "- ";
    if (const json::object* object = item.if_object(); object && !object->empty()) {
      return Mapping(*object, depth + 1, true);
    }
    if (const json::array* array = item.if_array(); array && !array->empty()) {
      // The first item of a nested sequence stays on the same line.
      for (size_t i = 0; i < array->size(); ++i) {
        if (i > 0) Indent(depth + 1);
        Item((*array)[i], depth + 1);
      }
      return;
    }
    Inline(item, depth + 1);
    out_ += '\n';
  }

  void Inline(const json::value& value, int depth) {
    switch (value.kind()) {
      case json::kind::null:
        out_ += "null";
        break;
      case json::kind::bool_:
        out_ += value.get_bool() ? "true" : "false";
        break;
      case json::kind::int64:
        out_ += std::to_string(value.get_int64());
        break;
      case json::kind::uint64:
        out_ += std::to_string(value.get_uint64());
        break;
      case json::kind::double_:
        out_ += fmt::format("{}", value.get_double());
        break;
      case json::kind::object:
        out_ += "{}";
        break;
      case json::kind::array:
        out_ += "[]";
        break;
      case json::kind::string:
        Text(View(value.get_string()), depth);
    }
  }

  void Text(std::string_view text, int depth) {
    bool lines = text.find('\n') != std::string_view::npos;
    // A block scalar cannot start with a blank, or contain only blank lines.
    bool block = lines && text.front() != ' ' && text.front() != '\n' && !NeedsEscapes(text, true);
    if (!block) {
      out_ += YamlScalar(text);
      return;
    }
    size_t end = text.size();
    while (end > 0 && text[end - 1] == '\n') --end;
    size_t newlines = text.size() - end;
    out_ += newlines == 0 ? "|-" : newlines == 1 ? "|" : "|+";
    std::string_view rest = newlines > 0 ? text.substr(0, text.size() - 1) : text;
    for (;;) {
      out_ += '\n';
      size_t stop = rest.find('\n');
      std::string_view line = rest.substr(0, stop);
      if (!line.empty()) Indent(std::max(depth, 1));
      out_ += line;
      if (stop == std::string_view::npos) return;
      rest.remove_prefix(stop + 1);
    }
  }

  std::string out_;
};

}  // namespace

std::string YamlScalar(std::string_view text) {
  if (NeedsEscapes(text, false)) return Doubled(text);
  if (!NeedsQuotes(text)) return std::string(text);
  if (text.empty() || IsWord(text) || LooksLikeNumber(text)) return Doubled(text);
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + '\'';
}

std::string JsonToYaml(std::string_view text) {
  json::parse_options options;
  options.max_depth = 10000;  // the input is our own
  Writer writer;
  writer.Document(json::parse(json::string_view(text.data(), text.size()), {}, options));
  return writer.Take();
}

}  // namespace keelson::apiserver
