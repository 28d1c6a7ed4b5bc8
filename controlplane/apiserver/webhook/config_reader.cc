#include "controlplane/apiserver/webhook/config_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

namespace keelson::apiserver {

Result<std::chrono::milliseconds> ParseDuration(const std::string& text) {
  const Error bad(Code::kInvalid, "invalid duration \"" + text + "\"");
  if (text == "0") return std::chrono::milliseconds(0);
  double total = 0;
  const char* at = text.c_str();
  if (!*at) return bad;
  while (*at) {
    char* end = nullptr;
    if (*at < '0' || *at > '9') return bad;
    double number = std::strtod(at, &end);
    std::string unit;
    for (at = end; *at >= 'a' && *at <= 'z'; ++at) unit += *at;
    double scale = unit == "ms" ? 1 : unit == "s" ? 1e3 : unit == "m" ? 6e4 : unit == "h" ? 3.6e6 : 0;
    if (scale == 0) return bad;
    total += number * scale;
  }
  if (total > 1e15) return bad;
  return std::chrono::milliseconds(static_cast<int64_t>(total));
}

Result<ConfigReader> ConfigReader::Document(const std::string& text, const std::string& kind,
                                            const std::vector<std::string>& versions) {
  ASSIGN_OR_RETURN(ConfigReader reader, Mapping(text));
  std::string version = reader.Text("apiVersion"), found = reader.Text("kind");
  if (found != kind || std::find(versions.begin(), versions.end(), version) == versions.end()) {
    return Error(Code::kInvalid, fmt::format("expected {}, Kind={}, found \"{}\", Kind={}",
                                             fmt::join(versions, " or "), kind, version, found));
  }
  return reader;
}

Result<ConfigReader> ConfigReader::Mapping(const std::string& text) {
  try {
    ConfigReader reader(YAML::Load(text), "");
    if (!reader.node_.IsMap()) return Error(Code::kInvalid, "not a mapping");
    return reader;
  } catch (const YAML::Exception& error) {
    return Error(Code::kInvalid, error.what());
  }
}

void ConfigReader::ExpectKind(const std::string& group, const std::string& kind) {
  const std::string version = Text("apiVersion"), found = Text("kind");
  if (found == kind && version.substr(0, version.find('/')) == group) return;
  Fail("kind", fmt::format("no kind \"{}\" is registered for version \"{}\"; expected {} of {}", found,
                           version, kind, group));
}

ConfigReader::ConfigReader(YAML::Node node, std::string path)
    : node_(std::move(node)), path_(std::move(path)) {
  if (node_.IsDefined() && !node_.IsNull() && !node_.IsMap()) problem_ = path_ + ": must be a mapping";
}

std::string ConfigReader::PathOf(const char* field) const {
  return path_.empty() ? std::string(field) : path_ + "." + field;
}

void ConfigReader::Fail(const char* field, const std::string& why) {
  if (problem_.empty()) problem_ = PathOf(field) + ": " + why;
}

void ConfigReader::Take(ConfigReader& part) {
  Result<> finished = part.Finish();
  if (!finished && problem_.empty()) problem_ = finished.error().message();
}

YAML::Node ConfigReader::Find(const char* field) {
  known_.insert(field);
  if (!node_.IsDefined() || !node_.IsMap()) return YAML::Node(YAML::NodeType::Null);
  const YAML::Node& readonly = node_;
  YAML::Node found = readonly[field];
  return found.IsDefined() ? found : YAML::Node(YAML::NodeType::Null);
}

bool ConfigReader::Has(const char* field) { return !Find(field).IsNull(); }

std::string ConfigReader::Text(const char* field, std::string fallback) {
  YAML::Node found = Find(field);
  if (found.IsNull()) return fallback;
  if (!found.IsScalar()) {
    Fail(field, "must be a string");
    return fallback;
  }
  return found.Scalar();
}

std::string ConfigReader::Required(const char* field) {
  std::string text = Text(field);
  if (text.empty()) Fail(field, "Required value");
  return text;
}

bool ConfigReader::Bool(const char* field, bool fallback) {
  std::string text = Text(field, fallback ? "true" : "false");
  if (text != "true" && text != "false") Fail(field, "must be true or false");
  return text == "true";
}

int32_t ConfigReader::Int(const char* field, int32_t fallback) {
  const std::string text = Text(field);
  if (text.empty()) return fallback;
  int32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  Fail(field, "must be a number of 32 bits");
  return fallback;
}

std::chrono::milliseconds ConfigReader::Duration(const char* field, std::chrono::milliseconds fallback) {
  std::string text = Text(field);
  if (text.empty()) return fallback;
  auto parsed = ParseDuration(text);
  if (!parsed) Fail(field, parsed.error().message());
  return parsed.value_or(fallback);
}

std::vector<std::string> ConfigReader::Texts(const char* field) {
  std::vector<std::string> out;
  YAML::Node found = Find(field);
  if (found.IsNull()) return out;
  if (!found.IsSequence()) {
    Fail(field, "must be a list");
    return out;
  }
  for (const YAML::Node& one : found) {
    if (!one.IsScalar()) Fail(field, "must be a list of strings");
    if (one.IsScalar()) out.push_back(one.Scalar());
  }
  return out;
}

ConfigReader ConfigReader::Map(const char* field) { return ConfigReader(Find(field), PathOf(field)); }

std::vector<ConfigReader> ConfigReader::Maps(const char* field) {
  std::vector<ConfigReader> out;
  YAML::Node found = Find(field);
  if (found.IsNull()) return out;
  if (!found.IsSequence()) {
    Fail(field, "must be a list");
    return out;
  }
  for (const YAML::Node& one : found) out.emplace_back(one, fmt::format("{}[{}]", PathOf(field), out.size()));
  return out;
}

Result<> ConfigReader::Finish() {
  if (problem_.empty() && node_.IsDefined() && node_.IsMap()) {
    for (const auto& entry : node_) {
      std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (known_.count(name)) continue;
      problem_ = fmt::format("unknown field \"{}\"", PathOf(name.c_str()));
      break;
    }
  }
  if (!problem_.empty()) return Error(Code::kInvalid, problem_);
  return {};
}

}  // namespace keelson::apiserver
