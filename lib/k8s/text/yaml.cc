#include "lib/k8s/text/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
#include <boost/json.hpp>

namespace keelson::k8s {
namespace {

namespace json = boost::json;

constexpr int kMaxDepth = 200;  // aliases may nest endlessly
// Plain nodes take at least a byte of the document each, but nested aliases could expand to any number.
constexpr size_t kAliasedNodes = 100'000, kMaxBytes = 32u << 20;

// Like Go's ParseInt with base 0: 0x1f, 0o17, 017, 0b1, each with an optional sign.
bool ParseInteger(std::string_view text, json::value& out) {
  bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  uint64_t number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc() || end != text.data() + text.size()) return false;
  constexpr auto kMost = static_cast<uint64_t>(INT64_MAX);
  if (negative && number > kMost + 1) return false;
  if (negative) {
    out = number == kMost + 1 ? INT64_MIN : -static_cast<int64_t>(number);
  } else if (number <= kMost) {
    out = static_cast<int64_t>(number);
  } else {
    out = number;
  }
  return true;
}

bool LooksLikeFloat(std::string_view text) {
  size_t at = 0, digits = 0;
  auto skip_digits = [&] {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at, ++digits;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  skip_digits();
  if (at < text.size() && text[at] == '.') ++at;
  skip_digits();
  if (digits == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    digits = 0;
    skip_digits();
    if (digits == 0) return false;
  }
  return at == text.size();
}

json::value PlainScalar(const std::string& text) {
  static const std::set<std::string, std::less<>> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                           "YES",  "on",   "On",   "ON"};
  static const std::set<std::string, std::less<>> kFalse = {"false", "False", "FALSE", "no", "No",
                                                            "NO",    "off",   "Off",   "OFF"};
  static const std::set<std::string, std::less<>> kNull = {"", "~", "null", "Null", "NULL"};
  if (kNull.count(text)) return nullptr;
  if (kTrue.count(text)) return true;
  if (kFalse.count(text)) return false;
  if (std::string_view("+-.0123456789").find(text.front()) == std::string_view::npos) {
    return json::value(text);
  }
  std::string plain = text;
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  json::value number;
  if (text.front() != '.' && ParseInteger(plain, number)) return number;
  if (LooksLikeFloat(plain)) {
    double value = std::strtod(plain.c_str(), nullptr);
    if (std::isfinite(value)) return value;
  }
  return json::value(text);
}

// What is wrong with the document's characters; empty: nothing.
std::string CharacterProblem(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i]);
    size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (size == 0) return "invalid leading UTF-8 octet";
    if (i + size > text.size()) return "incomplete UTF-8 octet sequence";
    uint32_t rune = size == 1 ? lead : lead & (0x7fu >> size);
    for (size_t k = 1; k < size; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return "invalid trailing UTF-8 octet";
      rune = rune << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (rune < kLeast[size]) return "invalid length of a UTF-8 sequence";
    if ((rune >= 0xd800 && rune < 0xe000) || rune > 0x10ffff) return "invalid Unicode character";
    bool good = rune == '\t' || rune == '\n' || rune == '\r' || (rune >= 0x20 && rune < 0x7f) ||
                rune == 0x85 || (rune >= 0xa0 && rune <= 0xfffd && (rune != 0xfeff || i == 0)) ||
                rune >= 0x10000;
    if (!good) return "control characters are not allowed";
    i += size;
  }
  return "";
}

class Converter {
 public:
  explicit Converter(size_t document) : max_nodes_(std::max(document, kAliasedNodes)) {}

  Result<json::value> Convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth) return Error(Code::kBadRequest, "yaml: document is nested too deeply");
    if (node.IsScalar()) bytes_ += node.Scalar().size();
    if (++nodes_ > max_nodes_ || bytes_ > kMaxBytes) {
      return Error(Code::kBadRequest, "yaml: document contains excessive aliasing");
    }
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return json::value(nullptr);
      case YAML::NodeType::Scalar:
        // "?" marks a plain scalar; a quoted one ("!") is a string whatever it looks like.
        if (node.Tag() == "?" || node.Tag().empty()) return PlainScalar(node.Scalar());
        return json::value(node.Scalar());
      case YAML::NodeType::Sequence: {
        json::array out;
        for (const YAML::Node& item : node) {
          KEELSON_ASSIGN_OR_RETURN(json::value value, Convert(item, depth + 1));
          out.push_back(std::move(value));
        }
        return json::value(std::move(out));
      }
      case YAML::NodeType::Map:
        break;
    }
    json::object out;
    std::vector<YAML::Node> merged;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(Code::kBadRequest, "yaml: map keys must be scalars");
      std::string key = KeyOf(entry.first);
      if (key == "<<" && (entry.first.Tag() == "?" || entry.first.Tag().empty())) {
        merged.push_back(entry.second);
        continue;
      }
      if (out.contains(key)) {
        repeated_ +=
            fmt::format("\n  line {}: key \"{}\" already set in map", entry.first.Mark().line + 1, key);
      }
      KEELSON_ASSIGN_OR_RETURN(json::value value, Convert(entry.second, depth + 1));
      out[key] = std::move(value);
    }
    for (const YAML::Node& other : merged) KEELSON_RETURN_IF_ERROR(Merge(other, out, depth));
    return json::value(std::move(out));
  }

  const std::string& repeated() const { return repeated_; }

 private:
  // Keys are strings: plain numbers stay as written, words for true become "true".
  static std::string KeyOf(const YAML::Node& node) {
    bool plain = node.Tag() == "?" || node.Tag().empty();
    if (!plain) return node.Scalar();
    json::value value = PlainScalar(node.Scalar());
    return value.is_bool() ? (value.get_bool() ? "true" : "false") : node.Scalar();
  }

  // `<<: *other`, or a list of such: adds the keys that the mapping itself does not have.
  Result<> Merge(const YAML::Node& from, json::object& into, int depth) {
    if (from.IsSequence()) {
      for (const YAML::Node& one : from) {
        if (!one.IsMap()) {
          return Error(Code::kBadRequest, "yaml: map merge requires map or sequence of maps as the value");
        }
        KEELSON_RETURN_IF_ERROR(Merge(one, into, depth));
      }
      return {};
    }
    if (!from.IsMap()) {
      return Error(Code::kBadRequest, "yaml: map merge requires map or sequence of maps as the value");
    }
    KEELSON_ASSIGN_OR_RETURN(json::value value, Convert(from, depth + 1));
    for (auto& member : value.get_object()) {
      if (!into.contains(member.key())) into.emplace(member.key(), std::move(member.value()));
    }
    return {};
  }

  const size_t max_nodes_;
  size_t nodes_ = 0, bytes_ = 0;
  std::string repeated_;
};

}  // namespace

Result<std::string> YamlToJson(std::string_view yaml, std::vector<std::string>* problems) {
  if (std::string problem = CharacterProblem(yaml); !problem.empty()) {
    return Error(Code::kBadRequest, "error converting YAML to JSON: yaml: " + problem);
  }
  try {
    Converter converter(yaml.size());
    KEELSON_ASSIGN_OR_RETURN(json::value value, converter.Convert(YAML::Load(std::string(yaml)), 0));
    if (problems && !converter.repeated().empty()) {
      problems->push_back("yaml: unmarshal errors:" + converter.repeated());
    }
    return json::serialize(value);
  } catch (const YAML::Exception& error) {
    return Error(Code::kBadRequest, std::string("error converting YAML to JSON: ") + error.what());
  }
}

}  // namespace keelson::k8s
