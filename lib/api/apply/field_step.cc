// Steps of paths: parsing, order and printing.
#include "lib/api/apply/field_step.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/apply/field_path.h"
#include "lib/api/codec/json_text.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

// A JSON value of a key or a value step, as text.
enum class Rank { kNumber, kString, kBool, kList, kMap, kNull };  // in upstream's order

Rank RankOf(std::string_view value) {
  switch (value.empty() ? 'n' : value.front()) {
    case '"':
      return Rank::kString;
    case 't':
    case 'f':
      return Rank::kBool;
    case '[':
      return Rank::kList;
    case '{':
      return Rank::kMap;
    case 'n':
      return Rank::kNull;
  }
  return Rank::kNumber;
}

double NumberOf(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

int CompareNumbers(std::string_view a, std::string_view b) {
  int64_t x = 0, y = 0;
  bool whole = std::from_chars(a.data(), a.data() + a.size(), x).ptr == a.data() + a.size() &&
               std::from_chars(b.data(), b.data() + b.size(), y).ptr == b.data() + b.size();
  if (whole) return x < y ? -1 : x > y;
  double p = NumberOf(a), q = NumberOf(b);
  return p < q ? -1 : p > q;
}

int CompareValues(std::string_view a, std::string_view b) {
  Rank rank = RankOf(a);
  if (rank != RankOf(b)) return rank < RankOf(b) ? -1 : 1;
  if (rank == Rank::kNumber) return CompareNumbers(a, b);
  if (rank == Rank::kString) {
    // Compare without the quotes: the closing one must not count.
    return a.substr(1, a.size() - 2).compare(b.substr(1, b.size() - 2));
  }
  return a.compare(b);
}

size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Cuts the next `"name":value` from the inside of a canonical key object.
bool NextMember(std::string_view& rest, std::string_view& name, std::string_view& value) {
  if (rest.empty()) return false;
  size_t end = SkipString(rest, 0);
  name = rest.substr(0, end);
  size_t start = std::min(end + 1, rest.size()), at = start;
  int depth = 0;
  while (at < rest.size()) {
    char c = rest[at];
    if (c == '"') {
      at = SkipString(rest, at);
      continue;
    }
    if (c == ',' && depth == 0) break;
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    ++at;
  }
  value = rest.substr(start, at - start);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return true;
}

std::string_view Inside(std::string_view step) { return step.substr(3, step.size() - 4); }

int CompareKeys(std::string_view a, std::string_view b) {
  std::string_view rest_a = Inside(a), rest_b = Inside(b), name_a, name_b, value_a, value_b;
  for (;;) {
    bool more_a = NextMember(rest_a, name_a, value_a), more_b = NextMember(rest_b, name_b, value_b);
    if (!more_a || !more_b) return static_cast<int>(more_a) - static_cast<int>(more_b);
    if (int order = name_a.compare(name_b)) return order;
    if (int order = CompareValues(value_a, value_b)) return order;
  }
}

std::string Canonical(const json::value& value) {
  std::string out;
  if (const auto* text = value.if_string()) {
    Sink sink(out);
    AppendQuoted(std::string_view(text->data(), text->size()), sink);
    sink.Finish();
    return out;
  }
  if (const auto* number = value.if_double()) {
    Sink sink(out);
    AppendDouble(*number, sink);
    sink.Finish();
    return out;
  }
  return json::serialize(value);
}

// {"name":"plain"}, sorted and without escapes or white space: what every writer sends.
bool LooksCanonical(std::string_view text) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return false;
  std::string_view rest = text.substr(1, text.size() - 2), last;
  for (bool first = true; !rest.empty(); first = false) {
    if (!first) {
      if (rest.front() != ',') return false;
      rest.remove_prefix(1);
    }
    if (rest.size() < 2 || rest.front() != '"') return false;
    size_t end = rest.find_first_of("\"\\<>&", 1);
    if (end == rest.npos || rest[end] != '"' || end + 2 >= rest.size() || rest[end + 1] != ':') return false;
    std::string_view name = rest.substr(1, end - 1);
    if (!first && last >= name) return false;
    last = name;
    rest.remove_prefix(end + 2);
    if (rest.front() == '"') {
      end = 1;
      while (end < rest.size() && rest[end] != '"') {
        unsigned char c = static_cast<unsigned char>(rest[end]);
        if (c < 0x20 || c >= 0x7f || c == '\\' || c == '<' || c == '>' || c == '&') return false;
        ++end;
      }
      if (end == rest.size()) return false;
      ++end;
    } else {
      end = std::min(rest.find_first_not_of("0123456789"), rest.size());
      if (end == 0 || (end > 1 && rest.front() == '0') || end > 18) return false;
    }
    rest.remove_prefix(end);
  }
  return true;
}

bool ParseJson(std::string_view text, json::value& value) {
  boost::system::error_code error;
  value = json::parse(json::string_view(text.data(), text.size()), error);
  return !error;
}

// Prints a value as Go's %q and %v do.
std::string PrintValue(const json::value& value) {
  if (const auto* list = value.if_array()) {
    std::string out = "[";
    for (const auto& item : *list) out += (out.size() > 1 ? "," : "") + PrintValue(item);
    return out + "]";
  }
  if (const auto* map = value.if_object()) {
    std::string out = "{";
    for (const auto& member : *map) {
      if (out.size() > 1) out += ";";
      out.append(member.key().data(), member.key().size());
      out += "=" + PrintValue(member.value());
    }
    return out + "}";
  }
  return json::serialize(value);
}

}  // namespace

std::string FieldStep(std::string_view name) {
  std::string step;
  step.reserve(name.size() + 2);
  return step.append("f:").append(name);
}

std::string KeyStep(const std::vector<std::pair<std::string_view, std::string>>& keys) {
  std::string step = "k:{";
  for (const auto& [name, value] : keys) {
    if (step.size() > 3) step += ',';
    step.append("\"").append(name).append("\":").append(value);
  }
  step += '}';
  return step;
}

std::string ValueStep(std::string_view json) { return std::string("v:").append(json); }

bool CanonicalStep(std::string_view text, std::string& step, bool& known) {
  known = text.size() >= 2 && text[1] == ':' && std::string_view("fkvi").find(text[0]) != text.npos;
  if (text.size() < 2 || text[1] != ':') return false;
  if (!known) return true;
  std::string_view rest = text.substr(2);
  if (text[0] == 'f' || (text[0] == 'k' && LooksCanonical(rest))) {
    step = text;
    return true;
  }
  if (text[0] == 'i') {
    int64_t index = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
    step = "i:" + std::to_string(index);
    return error == std::errc() && end == rest.data() + rest.size();
  }
  json::value value;
  if (!ParseJson(rest, value)) return false;
  if (text[0] == 'v') {
    step = ValueStep(Canonical(value));
    return true;
  }
  if (!value.is_object()) return false;
  std::vector<std::pair<std::string_view, std::string>> keys;
  for (const auto& member : value.get_object()) {
    keys.emplace_back(std::string_view(member.key().data(), member.key().size()), Canonical(member.value()));
  }
  std::sort(keys.begin(), keys.end());
  step = "k:{";
  Sink sink(step);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) sink.Put(',');
    AppendQuoted(keys[i].first, sink);
    sink.Put(':');
    sink.Append(keys[i].second);
  }
  sink.Put('}');
  sink.Finish();
  return true;
}

int CompareSteps(std::string_view a, std::string_view b) {
  if (a[0] != b[0]) {
    constexpr std::string_view kOrder = "fkvi";
    return kOrder.find(a[0]) < kOrder.find(b[0]) ? -1 : 1;
  }
  if (a[0] == 'f' || a == b) return a.compare(b);
  int order = a[0] == 'k' ? CompareKeys(a, b) : CompareValues(a.substr(2), b.substr(2));
  return order != 0 ? order : a.compare(b);  // 1 and 1.0 are different steps
}

std::string PrintStep(std::string_view step) {
  std::string_view rest = step.substr(2);
  if (step[0] == 'f') return std::string(".").append(rest);
  if (step[0] == 'i') return std::string("[").append(rest).append("]");
  json::value value;
  if (!ParseJson(rest, value)) return "{{invalid path element}}";
  if (step[0] == 'v') return "[=" + PrintValue(value) + "]";
  std::string out = "[";
  for (const auto& member : value.get_object()) {
    if (out.size() > 1) out += ',';
    out.append(member.key().data(), member.key().size());
    out += "=" + PrintValue(member.value());
  }
  return out + "]";
}

}  // namespace keelson::api
