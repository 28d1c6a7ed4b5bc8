#include "lib/api/openapi/extension.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "lib/api/openapi/parts.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

constexpr std::string_view kDefinition = "#/definitions/", kParameter = "#/parameters/";

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }
json::string_view Boost(std::string_view text) { return {text.data(), text.size()}; }

const json::object* ObjectAt(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(Boost(name));
  return value ? value->if_object() : nullptr;
}

// Calls `visit` with each object that refers to something, and with what that is. False: not what is below it now.
template <typename Value, typename Visit>
void ForEachReference(Value& value, const Visit& visit) {
  if (value.is_array()) {
    for (auto& item : value.get_array()) ForEachReference(item, visit);
    return;
  }
  if (!value.is_object()) return;
  auto& object = value.get_object();
  if (auto* reference = object.if_contains("$ref"); reference && reference->is_string()) {
    const std::string target(View(reference->get_string()));
    if (!visit(value, target)) return;
  }
  for (auto& member : object) ForEachReference(member.value(), visit);
}

// Puts shared parameters where they are used.
void Inline(json::value& value, const json::object* parameters) {
  ForEachReference(value, [&](json::value& at, const std::string& target) {
    if (!target.starts_with(kParameter)) return true;
    const json::object* found =
        parameters ? ObjectAt(*parameters, target.substr(kParameter.size())) : nullptr;
    at = found ? json::value(*found) : json::value(json::object());
    return false;
  });
}

std::set<std::string> DefinitionsOf(const json::value& value) {
  std::set<std::string> out;
  ForEachReference(value, [&](const json::value&, const std::string& target) {
    if (target.starts_with(kDefinition)) out.insert(target.substr(kDefinition.size()));
    return true;
  });
  return out;
}

// What two definitions have in common that describe the same fields: all but texts and kinds, sorted.
json::value Shape(const json::value& value, bool names) {
  if (value.is_array()) {
    json::array out;
    for (const json::value& item : value.get_array()) out.push_back(Shape(item, false));
    return out;
  }
  if (!value.is_object()) return value;
  std::map<std::string_view, const json::value*> sorted;
  for (const auto& member : value.get_object()) sorted.emplace(View(member.key()), &member.value());
  json::object out;
  for (const auto& [name, below] : sorted) {
    // Names of properties are no keywords.
    if (!names && (name == "description" || name == "x-kubernetes-group-version-kind")) continue;
    out[Boost(name)] = Shape(*below, !names && name == "properties");
  }
  return out;
}

std::string ShapeOf(const json::value& definition) { return json::serialize(Shape(definition, false)); }

// The shapes of this server's definitions.
const std::map<std::string, size_t>& OwnShapes() {
  static const auto* shapes = [] {
    auto* out = new std::map<std::string, size_t>;
    const json::value document = ParseOpenApi(OpenApiV2Json());
    for (const auto& [name, definition] : document.at("definitions").as_object()) {
      out->emplace(View(name), std::hash<std::string>()(ShapeOf(definition)));
    }
    return out;
  }();
  return *shapes;
}

class Merger {
 public:
  void Add(std::string_view part) {
    json::value read = ParseOpenApi(part);
    json::object& definitions = read.at("definitions").as_object();
    std::map<std::string, std::string> renamed;
    std::vector<std::string> added;
    for (const auto& [key, definition] : definitions) {
      const std::string name(View(key));
      const size_t shape = std::hash<std::string>()(ShapeOf(definition));
      std::string chosen = name;
      for (int i = 2; Taken(chosen, shape); ++i) chosen = fmt::format("{}_v{}", name, i);
      if (chosen != name) renamed[name] = chosen;
      if (!OwnShapes().contains(chosen) && shapes_.emplace(chosen, shape).second) added.push_back(name);
    }
    ForEachReference(read, [&](json::value& at, const std::string& target) {
      if (!target.starts_with(kDefinition)) return true;
      const auto found = renamed.find(target.substr(kDefinition.size()));
      if (found != renamed.end()) at.get_object()["$ref"] = std::string(kDefinition) + found->second;
      return true;
    });
    for (const std::string& name : added) {
      const auto other = renamed.find(name);
      definitions_[other == renamed.end() ? name : other->second] = json::serialize(definitions.at(name));
    }
    for (const auto& [path, item] : read.at("paths").as_object()) {
      paths_.emplace(View(path), json::serialize(item));
    }
  }

  OpenApiAddition Finish() const {
    const OpenApiNamed paths(paths_.begin(), paths_.end());
    const OpenApiNamed definitions(definitions_.begin(), definitions_.end());
    return {{Members(paths), Members(definitions)}, GnosticPartV2(paths, definitions)};
  }

 private:
  // Whether the name stands for something else.
  bool Taken(const std::string& name, size_t shape) const {
    for (const auto* known : {&OwnShapes(), &shapes_}) {
      if (const auto found = known->find(name); found != known->end()) return found->second != shape;
    }
    return false;
  }

  static std::string Members(const OpenApiNamed& named) {
    std::string out;
    for (const auto& [name, text] : named) {
      if (!out.empty()) out += ',';
      out += json::serialize(json::string(Boost(name))) + ":" + text;
    }
    return out;
  }

  std::map<std::string, size_t> shapes_;
  std::map<std::string, std::string> paths_, definitions_;
};

std::string Cut(std::string_view document, std::string_view prefix) {
  json::value read = ParseOpenApi(document);
  const json::object& root = read.as_object();
  const json::object* parameters = ObjectAt(root, "parameters");
  const json::object* definitions = ObjectAt(root, "definitions");
  json::object paths, used;
  if (const json::object* all = ObjectAt(root, "paths")) {
    for (const auto& [path, item] : *all) {
      const std::string_view rest = View(path).substr(std::min(path.size(), prefix.size()));
      if (!View(path).starts_with(prefix) || (!rest.empty() && rest[0] != '/')) continue;
      json::value kept = item;
      Inline(kept, parameters);
      paths[path] = std::move(kept);
    }
  }
  std::set<std::string> waiting = DefinitionsOf(json::value(paths));
  while (!waiting.empty()) {
    const std::string name = *waiting.begin();
    waiting.erase(waiting.begin());
    if (used.contains(name)) continue;
    const json::object* definition = definitions ? ObjectAt(*definitions, name) : nullptr;
    if (!definition) continue;
    used[name] = *definition;
    waiting.merge(DefinitionsOf(used.at(name)));
  }
  return json::serialize(json::object{{"paths", std::move(paths)}, {"definitions", std::move(used)}});
}

}  // namespace

Result<std::string> CutOpenApiV2(std::string_view document, std::string_view prefix) {
  try {
    std::string part = Cut(document, prefix);
    // Foreign documents may have what this server's form of protobuf has no place for.
    (void)MergeOpenApiV2({part});
    return part;
  } catch (const std::exception& error) {
    return Error(Code::kInvalid, fmt::format("OpenAPI document of version 2: {}", error.what()));
  }
}

OpenApiAddition MergeOpenApiV2(const std::vector<std::string>& parts) {
  Merger merger;
  for (const std::string& part : parts) merger.Add(part);
  return merger.Finish();
}

}  // namespace keelson::api
