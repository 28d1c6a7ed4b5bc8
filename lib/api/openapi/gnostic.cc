// OpenAPI version 2 in the protobuf form of google/gnostic (openapiv2/OpenAPIv2.proto), from small pieces
// of JSON. Covers only what our documents contain.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/openapi/parts.h"
#include "lib/api/wire.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }
std::string_view Text(const json::value& value) {
  const json::string* text = value.if_string();
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

// Any: extensions, defaults and enum values travel as YAML, of which JSON is a subset.
void PutAny(Sink& out, uint32_t field, const json::value& value) {
  wire::Open any = wire::Begin(out, field);
  wire::PutBytes(out, 2, json::serialize(value));
  wire::End(out, any);
}

void PutExtension(Sink& out, uint32_t field, std::string_view name, const json::value& value) {
  wire::Open entry = wire::Begin(out, field);
  wire::PutBytes(out, 1, name);
  PutAny(out, 2, value);
  wire::End(out, entry);
}

void PutTexts(Sink& out, uint32_t field, const json::value& list) {
  for (const json::value& item : list.as_array()) wire::PutBytes(out, field, Text(item));
}

bool IsExtension(std::string_view name) { return name.substr(0, 2) == "x-"; }

// Members of schemas that are numbers or booleans.
enum class ScalarType { kDouble, kInt, kBool };
struct ScalarMember {
  std::string_view name;
  uint32_t field;
  ScalarType type;
};
constexpr ScalarMember kScalars[] = {
    {"multipleOf", 6, ScalarType::kDouble},      {"maximum", 7, ScalarType::kDouble},
    {"exclusiveMaximum", 8, ScalarType::kBool},  {"minimum", 9, ScalarType::kDouble},
    {"exclusiveMinimum", 10, ScalarType::kBool}, {"maxLength", 11, ScalarType::kInt},
    {"minLength", 12, ScalarType::kInt},         {"maxItems", 14, ScalarType::kInt},
    {"minItems", 15, ScalarType::kInt},          {"uniqueItems", 16, ScalarType::kBool},
    {"maxProperties", 17, ScalarType::kInt},     {"minProperties", 18, ScalarType::kInt}};

void PutScalar(Sink& out, std::string_view name, const json::value& value) {
  for (const ScalarMember& member : kScalars) {
    if (member.name != name) continue;
    if (member.type == ScalarType::kDouble) PutGnosticDouble(out, member.field, value);
    if (member.type == ScalarType::kInt) PutGnosticInt(out, member.field, value);
    if (member.type == ScalarType::kBool && value == true) wire::PutInt(out, member.field, 1);
    return;
  }
}

void PutSchema(Sink& out, const json::object& schema) {
  for (const auto& member : schema) {
    std::string_view name = View(member.key());
    const json::value& value = member.value();
    if (name == "$ref") {
      wire::PutBytes(out, 1, Text(value));
    } else if (name == "format") {
      wire::PutBytes(out, 2, Text(value));
    } else if (name == "title") {
      wire::PutBytes(out, 3, Text(value));
    } else if (name == "description") {
      wire::PutBytes(out, 4, Text(value));
    } else if (name == "default") {
      PutAny(out, 5, value);
    } else if (name == "pattern") {
      wire::PutBytes(out, 13, Text(value));
    } else if (name == "required") {
      PutTexts(out, 19, value);
    } else if (name == "enum") {
      for (const json::value& item : value.as_array()) PutAny(out, 20, item);
    } else if (name == "additionalProperties") {
      wire::Open either = wire::Begin(out, 21);
      if (const bool* allowed = value.if_bool()) {
        wire::PutInt(out, 2, *allowed ? 1 : 0);
      } else {
        wire::Open inner = wire::Begin(out, 1);
        PutSchema(out, value.as_object());
        wire::End(out, inner);
      }
      wire::End(out, either);
    } else if (name == "type") {
      wire::Open type = wire::Begin(out, 22);
      wire::PutBytes(out, 1, Text(value));
      wire::End(out, type);
    } else if (name == "items") {
      wire::Open items = wire::Begin(out, 23), inner = wire::Begin(out, 1);
      PutSchema(out, value.as_object());
      wire::End(out, inner);
      wire::End(out, items);
    } else if (name == "properties") {
      wire::Open properties = wire::Begin(out, 25);
      for (const auto& property : value.as_object()) {
        wire::Open entry = wire::Begin(out, 1);
        wire::PutBytes(out, 1, View(property.key()));
        wire::Open inner = wire::Begin(out, 2);
        PutSchema(out, property.value().as_object());
        wire::End(out, inner);
        wire::End(out, entry);
      }
      wire::End(out, properties);
    } else if (IsExtension(name)) {
      PutExtension(out, 31, name, value);
    } else {
      PutScalar(out, name, value);
    }
  }
}

// ParametersItem > Parameter > BodyParameter, or NonBodyParameter > header, form, query or path.
void PutParameter(Sink& out, uint32_t field, const json::object& parameter) {
  std::string_view in = Text(parameter.at("in"));
  const json::value* required = parameter.if_contains("required");
  const json::value* description = parameter.if_contains("description");
  wire::Open item = wire::Begin(out, field), one = wire::Begin(out, 1);
  if (in == "body") {
    wire::Open body = wire::Begin(out, 1);
    if (description) wire::PutBytes(out, 1, Text(*description));
    wire::PutBytes(out, 2, Text(parameter.at("name")));
    wire::PutBytes(out, 3, in);
    if (required) wire::PutInt(out, 4, 1);
    wire::Open schema = wire::Begin(out, 5);
    PutSchema(out, parameter.at("schema").as_object());
    wire::End(out, schema);
    wire::End(out, body);
  } else {
    // Forms and queries have one more member before the type.
    const bool shorter = in == "path" || in == "header";
    const uint32_t place = in == "header" ? 1 : in == "formData" ? 2 : in == "query" ? 3 : 4;
    wire::Open plain = wire::Begin(out, 2), inner = wire::Begin(out, place);
    if (required) wire::PutInt(out, 1, 1);
    wire::PutBytes(out, 2, in);
    if (description) wire::PutBytes(out, 3, Text(*description));
    wire::PutBytes(out, 4, Text(parameter.at("name")));
    wire::PutBytes(out, shorter ? 5 : 6, Text(parameter.at("type")));
    if (parameter.if_contains("uniqueItems")) wire::PutInt(out, shorter ? 19 : 20, 1);
    wire::End(out, inner);
    wire::End(out, plain);
  }
  wire::End(out, one);
  wire::End(out, item);
}

// Responses > NamedResponseValue > ResponseValue > Response > SchemaItem > Schema.
void PutResponses(Sink& out, uint32_t field, const json::object& responses) {
  wire::Open all = wire::Begin(out, field);
  for (const auto& member : responses) {
    const json::object& response = member.value().as_object();
    wire::Open entry = wire::Begin(out, 1);
    wire::PutBytes(out, 1, View(member.key()));
    wire::Open value = wire::Begin(out, 2), inner = wire::Begin(out, 1);
    wire::PutBytes(out, 1, Text(response.at("description")));
    if (const json::value* schema = response.if_contains("schema")) {
      wire::Open either = wire::Begin(out, 2), plain = wire::Begin(out, 1);
      PutSchema(out, schema->as_object());
      wire::End(out, plain);
      wire::End(out, either);
    }
    wire::End(out, inner);
    wire::End(out, value);
    wire::End(out, entry);
  }
  wire::End(out, all);
}

void PutOperation(Sink& out, uint32_t field, const json::object& operation) {
  wire::Open open = wire::Begin(out, field);
  for (const auto& member : operation) {
    std::string_view name = View(member.key());
    const json::value& value = member.value();
    if (name == "tags") PutTexts(out, 1, value);
    if (name == "description") wire::PutBytes(out, 3, Text(value));
    if (name == "operationId") wire::PutBytes(out, 5, Text(value));
    if (name == "produces") PutTexts(out, 6, value);
    if (name == "consumes") PutTexts(out, 7, value);
    if (name == "parameters") {
      for (const json::value& parameter : value.as_array()) PutParameter(out, 8, parameter.as_object());
    }
    if (name == "responses") PutResponses(out, 9, value.as_object());
    if (name == "schemes") PutTexts(out, 10, value);
    if (IsExtension(name)) PutExtension(out, 13, name, value);
  }
  wire::End(out, open);
}

}  // namespace

std::string GnosticSchema(std::string_view text) {
  json::value schema = ParseOpenApi(text);
  std::string out;
  Sink sink(out);
  PutSchema(sink, schema.as_object());
  sink.Finish();
  return out;
}

std::string GnosticPathItem(std::string_view text) {
  static constexpr std::pair<std::string_view, uint32_t> kMethods[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"options", 6}, {"head", 7}, {"patch", 8}};
  json::value item = json::parse({text.data(), text.size()});
  std::string out;
  Sink sink(out);
  for (const auto& [name, field] : kMethods) {
    if (const json::value* operation = item.as_object().if_contains(name)) {
      PutOperation(sink, field, operation->as_object());
    }
  }
  if (const json::value* parameters = item.as_object().if_contains("parameters")) {
    for (const json::value& parameter : parameters->as_array()) PutParameter(sink, 9, parameter.as_object());
  }
  sink.Finish();
  return out;
}

std::string GnosticPartV2(const OpenApiNamed& paths, const OpenApiNamed& definitions) {
  std::string out;
  Sink sink(out);
  auto named = [&](uint32_t field, std::string_view name, std::string_view value) {
    wire::Open entry = wire::Begin(sink, field);
    wire::PutBytes(sink, 1, name);
    wire::PutBytes(sink, 2, value);
    wire::End(sink, entry);
  };
  wire::Open all = wire::Begin(sink, 8);
  for (const auto& [path, json] : paths) named(2, path, GnosticPathItem(json));
  wire::End(sink, all);
  all = wire::Begin(sink, 9);
  for (const auto& [name, json] : definitions) named(1, name, GnosticSchema(json));
  wire::End(sink, all);
  sink.Finish();
  return out;
}

json::value ParseOpenApi(std::string_view text) {
  json::parse_options options;
  options.max_depth = 1000;
  return json::parse({text.data(), text.size()}, {}, options);
}

void PutGnosticDouble(Sink& out, uint32_t field, const json::value& value) {
  if (!value.is_number()) return;
  const auto number = value.to_number<double>();
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  wire::PutTag(out, field, wire::kFixed64);
  char bytes[8];
  for (char& byte : bytes) {
    byte = static_cast<char>(bits & 0xff);
    bits >>= 8;
  }
  out.Append({bytes, sizeof bytes});
}

void PutGnosticInt(Sink& out, uint32_t field, const json::value& value) {
  json::error_code error;
  const auto number = value.is_number() ? value.to_number<int64_t>(error) : 0;
  if (!error && number != 0) wire::PutInt(out, field, static_cast<uint64_t>(number));
}

std::string GnosticSecurity(std::string_view text) {
  json::value definitions = json::parse({text.data(), text.size()});
  std::string out;
  Sink sink(out);
  for (const auto& member : definitions.as_object()) {
    // SecurityRequirement > NamedStringArray: no scopes.
    wire::Open requirement = wire::Begin(sink, 12), named = wire::Begin(sink, 1);
    wire::PutBytes(sink, 1, View(member.key()));
    wire::End(sink, wire::Begin(sink, 2));
    wire::End(sink, named);
    wire::End(sink, requirement);
  }
  wire::Open all = wire::Begin(sink, 13);
  for (const auto& member : definitions.as_object()) {
    // NamedSecurityDefinitionsItem > SecurityDefinitionsItem > ApiKeySecurity.
    const json::object& scheme = member.value().as_object();
    wire::Open named = wire::Begin(sink, 1);
    wire::PutBytes(sink, 1, View(member.key()));
    wire::Open item = wire::Begin(sink, 2), key = wire::Begin(sink, 2);
    wire::PutBytes(sink, 1, Text(scheme.at("type")));
    wire::PutBytes(sink, 2, Text(scheme.at("name")));
    wire::PutBytes(sink, 3, Text(scheme.at("in")));
    wire::PutBytes(sink, 4, Text(scheme.at("description")));
    wire::End(sink, key);
    wire::End(sink, item);
    wire::End(sink, named);
  }
  wire::End(sink, all);
  sink.Finish();
  return out;
}

}  // namespace keelson::api
