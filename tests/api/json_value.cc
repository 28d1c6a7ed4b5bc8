#include "tests/api/json_value.h"

#include <cstdlib>
#include <regex>
#include <stdexcept>

#include <yaml-cpp/yaml.h>

namespace keelson::apitest {
namespace {

json::value Scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return json::string(text);  // quoted, or a block
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  static const std::regex kInteger("[-+]?[0-9]+"),
      kFloat("[-+]?([0-9]+\\.[0-9]*|\\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?");
  if (std::regex_match(text, kInteger)) {
    errno = 0;
    int64_t number = std::strtoll(text.c_str(), nullptr, 10);
    if (errno == 0) return number;
  }
  if (std::regex_match(text, kFloat)) return std::strtod(text.c_str(), nullptr);
  return json::string(text);
}

json::value Convert(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      json::object out;
      for (const auto& item : node) out[item.first.Scalar()] = Convert(item.second);
      return out;
    }
    case YAML::NodeType::Sequence: {
      json::array out;
      for (const auto& item : node) out.push_back(Convert(item));
      return out;
    }
    case YAML::NodeType::Scalar:
      return Scalar(node);
    default:
      return nullptr;
  }
}

bool IsIndex(std::string_view key) {
  return !key.empty() && key.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsArrayOverlay(const json::object& change) {
  for (const auto& item : change) {
    if (item.key() != "+" && !IsIndex(item.key())) return false;
  }
  return !change.empty();
}

json::value OverlayArray(json::array base, const json::object& change) {
  std::vector<size_t> removed;
  for (const auto& item : change) {
    if (item.key() == "+") {
      for (const json::value& one : item.value().as_array()) base.push_back(one);
      continue;
    }
    size_t index = std::strtoul(std::string(item.key()).c_str(), nullptr, 10);
    if (index >= base.size()) {
      throw std::runtime_error("overlay of an element that is not there: " + json::serialize(change));
    }
    if (item.value().is_null()) {
      removed.push_back(index);
    } else {
      base[index] = Overlay(std::move(base[index]), item.value());
    }
  }
  std::sort(removed.rbegin(), removed.rend());
  for (size_t index : removed) base.erase(base.begin() + static_cast<ptrdiff_t>(index));
  return base;
}

std::string Text(const json::value& value) {
  std::string text = json::serialize(value);
  return text.size() > 600 ? text.substr(0, 600) + "..." : text;
}

std::string Join(const std::string& path, std::string_view key) {
  if (key.find_first_of("./") != std::string_view::npos) return path + "[" + std::string(key) + "]";
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

bool IsMatcher(const json::value& value) {
  if (!value.is_string()) return false;
  std::string_view text = value.as_string();
  return text.size() > 2 && text.front() == '<' && text.back() == '>' && text != "<none>" &&
         text != "<unset>" && text != "<pending>" && text != "<unknown>" && text != "<default>" &&
         text.find(' ') == text.npos;
}

void Compare(const std::string& path, const json::value& expected, const json::value& got,
             std::vector<std::string>& out);

void CompareObjects(const std::string& path, const json::object& expected, const json::object& got,
                    std::vector<std::string>& out) {
  for (const auto& item : expected) {
    const json::value* found = got.if_contains(item.key());
    if (item.value().is_string() && item.value().as_string() == "<absent>") {
      if (found) out.push_back(Join(path, item.key()) + ": unexpected " + Text(*found));
    } else if (!found) {
      out.push_back(Join(path, item.key()) + ": missing, expected " + Text(item.value()));
    } else {
      Compare(Join(path, item.key()), item.value(), *found, out);
    }
  }
  for (const auto& item : got) {
    if (!expected.contains(item.key())) {
      out.push_back(Join(path, item.key()) + ": unexpected " + Text(item.value()));
    }
  }
}

void Compare(const std::string& path, const json::value& expected, const json::value& got,
             std::vector<std::string>& out) {
  if (IsMatcher(expected)) {
    if (!Matches(expected.as_string(), got)) {
      out.push_back(path + ": expected " + std::string(expected.as_string()) + ", got " + Text(got));
    }
    return;
  }
  if (expected.is_object() && got.is_object()) {
    CompareObjects(path, expected.as_object(), got.as_object(), out);
    return;
  }
  if (expected.is_array() && got.is_array() && expected.as_array().size() == got.as_array().size()) {
    for (size_t i = 0; i < expected.as_array().size(); ++i) {
      Compare(path + "[" + std::to_string(i) + "]", expected.as_array()[i], got.as_array()[i], out);
    }
    return;
  }
  bool numbers = expected.is_number() && got.is_number();
  bool equal = numbers ? expected.to_number<double>() == got.to_number<double>() : expected == got;
  if (!equal) out.push_back(path + ": expected " + Text(expected) + ", got " + Text(got));
}

}  // namespace

json::value ParseYaml(std::string_view text) { return Convert(YAML::Load(std::string(text))); }

json::value Overlay(json::value base, const json::value& change) {
  if (!change.is_object()) return change;
  const json::object& changes = change.as_object();
  if (base.is_array() && IsArrayOverlay(changes)) return OverlayArray(std::move(base.as_array()), changes);
  json::object out = base.is_object() ? base.as_object() : json::object();
  for (const auto& item : changes) {
    if (item.value().is_null()) {
      out.erase(item.key());
    } else {
      out[item.key()] = Overlay(out.contains(item.key()) ? out[item.key()] : json::value(), item.value());
    }
  }
  return out;
}

bool Matches(std::string_view matcher, const json::value& got) {
  if (matcher == "<any>") return true;
  if (matcher == "<number>") return got.is_number();
  if (matcher == "<null>") return got.is_null();
  if (!got.is_string()) return false;
  static const std::vector<std::pair<std::string_view, std::regex>> kForms = {
      {"<uuid>", std::regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")},
      {"<time>", std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z")},
      {"<microtime>",
       std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}Z")},
      {"<age>", std::regex("[0-9]+s")},
      {"<version>", std::regex("[1-9][0-9]*")},
      {"<ip>", std::regex("[0-9]+(\\.[0-9]+){3}|[0-9a-f:]+")},
      {"<token>", std::regex("[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+")},
  };
  for (const auto& [name, form] : kForms) {
    if (name == matcher) return std::regex_match(got.as_string().c_str(), form);
  }
  return false;
}

std::vector<std::string> Differences(const json::value& expected, const json::value& got) {
  std::vector<std::string> out;
  Compare("", expected, got, out);
  return out;
}

const json::value* At(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* at = &value;
  for (std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    at = at->as_object().if_contains(key);
    if (!at) return nullptr;
  }
  return at;
}

std::string StringAt(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* at = At(value, path);
  return at && at->is_string() ? std::string(at->as_string()) : std::string();
}

}  // namespace keelson::apitest
