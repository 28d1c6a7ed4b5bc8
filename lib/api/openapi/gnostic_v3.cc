// OpenAPI version 3 in the protobuf form of google/gnostic (openapiv3/OpenAPIv3.proto). Covers only what
// our documents contain.
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
  return text ? View(*text) : std::string_view();
}

// A nested message that `write` fills.
template <typename Write>
void Nested(Sink& out, uint32_t field, const Write& write) {
  wire::Open open = wire::Begin(out, field);
  write();
  wire::End(out, open);
}

// Entries of a map: {name = 1, value = 2}.
template <typename Write>
void Named(Sink& out, uint32_t field, std::string_view name, const Write& write) {
  Nested(out, field, [&] {
    wire::PutBytes(out, 1, name);
    Nested(out, 2, write);
  });
}

// Any: values without a fixed type travel as YAML, of which JSON is a subset.
void PutAny(Sink& out, uint32_t field, const json::value& value) {
  Nested(out, field, [&] { wire::PutBytes(out, 2, json::serialize(value)); });
}

void PutExtensions(Sink& out, uint32_t field, const json::object& object) {
  for (const auto& member : object) {
    std::string_view name = View(member.key());
    if (name.substr(0, 2) != "x-") continue;
    Nested(out, field, [&] {
      wire::PutBytes(out, 1, name);
      PutAny(out, 2, member.value());
    });
  }
}

void PutBool(Sink& out, uint32_t field, const json::value& value) {
  if (value.is_bool() && value.get_bool()) wire::PutInt(out, field, 1);
}

// DefaultType supports scalars only.
void PutDefault(Sink& out, uint32_t field, const json::value& value) {
  Nested(out, field, [&] {
    if (value.is_number()) {
      PutGnosticDouble(out, 1, value);
    } else if (value.is_bool()) {
      wire::PutInt(out, 2, value.get_bool() ? 1 : 0);
    } else {
      wire::PutBytes(out, 3, Text(value));
    }
  });
}

void PutSchemaOrReference(Sink& out, const json::object& schema);

void PutEach(Sink& out, uint32_t field, const json::value& schemas) {
  for (const json::value& schema : schemas.as_array()) {
    Nested(out, field, [&] { PutSchemaOrReference(out, schema.as_object()); });
  }
}

void PutSchemaMembers(Sink& out, const json::object& schema);

// Members that limit values; false for others.
bool PutLimit(Sink& out, std::string_view name, const json::value& value) {
  static constexpr std::pair<std::string_view, uint32_t> kDoubles[] = {
      {"multipleOf", 10}, {"maximum", 11}, {"minimum", 13}};
  static constexpr std::pair<std::string_view, uint32_t> kInts[] = {
      {"maxLength", 15}, {"minLength", 16},     {"maxItems", 18},
      {"minItems", 19},  {"maxProperties", 21}, {"minProperties", 22}};
  static constexpr std::pair<std::string_view, uint32_t> kBools[] = {{"exclusiveMaximum", 12},
                                                                     {"exclusiveMinimum", 14}};
  auto put = [&](const auto& members, const auto& write) {
    for (const auto& [member, field] : members) {
      if (member != name) continue;
      write(out, field, value);
      return true;
    }
    return false;
  };
  return put(kDoubles, PutGnosticDouble) || put(kInts, PutGnosticInt) || put(kBools, PutBool);
}

void PutSchemaMember(Sink& out, std::string_view name, const json::value& value) {
  if (PutLimit(out, name, value)) return;
  if (name == "required") {
    for (const json::value& item : value.as_array()) wire::PutBytes(out, 23, Text(item));
  } else if (name == "uniqueItems") {
    PutBool(out, 20, value);
  } else if (name == "nullable") {
    PutBool(out, 1, value);
  } else if (name == "enum") {
    for (const json::value& item : value.as_array()) PutAny(out, 24, item);
  } else if (name == "type") {
    wire::PutBytes(out, 25, Text(value));
  } else if (name == "allOf") {
    PutEach(out, 26, value);
  } else if (name == "oneOf") {
    PutEach(out, 27, value);
  } else if (name == "anyOf") {
    PutEach(out, 28, value);
  } else if (name == "not") {
    Nested(out, 29, [&] { PutSchemaMembers(out, value.as_object()); });
  } else if (name == "title") {
    wire::PutBytes(out, 9, Text(value));
  } else if (name == "pattern") {
    wire::PutBytes(out, 17, Text(value));
  } else if (name == "items") {
    Nested(out, 30, [&] { Nested(out, 1, [&] { PutSchemaOrReference(out, value.as_object()); }); });
  } else if (name == "properties") {
    Nested(out, 31, [&] {
      for (const auto& property : value.as_object()) {
        Named(out, 1, View(property.key()), [&] { PutSchemaOrReference(out, property.value().as_object()); });
      }
    });
  } else if (name == "additionalProperties") {
    Nested(out, 32, [&] {
      if (value.is_bool()) return wire::PutInt(out, 2, value.get_bool() ? 1 : 0);
      Nested(out, 1, [&] { PutSchemaOrReference(out, value.as_object()); });
    });
  } else if (name == "default") {
    if (!value.is_object() && !value.is_array() && !value.is_null()) PutDefault(out, 33, value);
  } else if (name == "description") {
    wire::PutBytes(out, 34, Text(value));
  } else if (name == "format") {
    wire::PutBytes(out, 35, Text(value));
  }
}

void PutSchemaMembers(Sink& out, const json::object& schema) {
  for (const auto& member : schema) PutSchemaMember(out, View(member.key()), member.value());
  PutExtensions(out, 36, schema);
}

void PutSchemaOrReference(Sink& out, const json::object& schema) {
  if (const json::value* reference = schema.if_contains("$ref")) {
    return Nested(out, 2, [&] { wire::PutBytes(out, 1, Text(*reference)); });
  }
  Nested(out, 1, [&] { PutSchemaMembers(out, schema); });
}

void PutContent(Sink& out, uint32_t field, const json::object& content) {
  Nested(out, field, [&] {
    for (const auto& type : content) {
      Named(out, 1, View(type.key()), [&] {
        if (const json::value* schema = type.value().as_object().if_contains("schema")) {
          Nested(out, 1, [&] { PutSchemaOrReference(out, schema->as_object()); });
        }
      });
    }
  });
}

void PutParameter(Sink& out, uint32_t field, const json::object& parameter) {
  auto write = [&] {
    for (const auto& member : parameter) {
      std::string_view name = View(member.key());
      const json::value& value = member.value();
      if (name == "name") wire::PutBytes(out, 1, Text(value));
      if (name == "in") wire::PutBytes(out, 2, Text(value));
      if (name == "description") wire::PutBytes(out, 3, Text(value));
      if (name == "required") PutBool(out, 4, value);
      if (name == "schema") Nested(out, 10, [&] { PutSchemaOrReference(out, value.as_object()); });
    }
    PutExtensions(out, 14, parameter);
  };
  Nested(out, field, [&] { Nested(out, 1, write); });
}

void PutResponses(Sink& out, uint32_t field, const json::object& responses) {
  Nested(out, field, [&] {
    for (const auto& code : responses) {
      const json::object& response = code.value().as_object();
      auto write = [&] {
        if (const json::value* text = response.if_contains("description")) {
          wire::PutBytes(out, 1, Text(*text));
        }
        if (const json::value* content = response.if_contains("content")) {
          PutContent(out, 3, content->as_object());
        }
      };
      Named(out, 2, View(code.key()), [&] { Nested(out, 1, write); });
    }
  });
}

void PutOperation(Sink& out, uint32_t field, const json::object& operation) {
  Nested(out, field, [&] {
    for (const auto& member : operation) {
      std::string_view name = View(member.key());
      const json::value& value = member.value();
      if (name == "tags") {
        for (const json::value& tag : value.as_array()) wire::PutBytes(out, 1, Text(tag));
      } else if (name == "description") {
        wire::PutBytes(out, 3, Text(value));
      } else if (name == "operationId") {
        wire::PutBytes(out, 5, Text(value));
      } else if (name == "parameters") {
        for (const json::value& parameter : value.as_array()) PutParameter(out, 6, parameter.as_object());
      } else if (name == "requestBody") {
        const json::object& body = value.as_object();
        auto write = [&] {
          if (const json::value* content = body.if_contains("content")) {
            PutContent(out, 2, content->as_object());
          }
          if (const json::value* required = body.if_contains("required")) PutBool(out, 3, *required);
        };
        Nested(out, 7, [&] { Nested(out, 1, write); });
      } else if (name == "responses") {
        PutResponses(out, 8, value.as_object());
      }
    }
    PutExtensions(out, 13, operation);
  });
}

void PutPathItem(Sink& out, const json::object& item) {
  static constexpr std::pair<std::string_view, uint32_t> kMethods[] = {
      {"get", 4}, {"put", 5}, {"post", 6}, {"delete", 7}, {"options", 8}, {"head", 9}, {"patch", 10}};
  for (const auto& [name, field] : kMethods) {
    if (const json::value* operation = item.if_contains(name)) {
      PutOperation(out, field, operation->as_object());
    }
  }
  if (const json::value* parameters = item.if_contains("parameters")) {
    for (const json::value& parameter : parameters->as_array()) PutParameter(out, 13, parameter.as_object());
  }
}

// SecuritySchemeOrReference > SecurityScheme.
void PutSecurityScheme(Sink& out, const json::object& scheme) {
  Nested(out, 1, [&] {
    wire::PutBytes(out, 1, Text(scheme.at("type")));
    wire::PutBytes(out, 2, Text(scheme.at("description")));
    wire::PutBytes(out, 3, Text(scheme.at("name")));
    wire::PutBytes(out, 4, Text(scheme.at("in")));
  });
}

}  // namespace

std::string GnosticPartV3(const OpenApiNamed& paths, const OpenApiNamed& schemas) {
  std::string out;
  Sink sink(out);
  Nested(sink, 4, [&] {
    for (const auto& [path, json] : paths) {
      const json::value item = ParseOpenApi(json);
      Named(sink, 1, path, [&] { PutPathItem(sink, item.as_object()); });
    }
  });
  Nested(sink, 5, [&] {
    Nested(sink, 1, [&] {
      for (const auto& [name, json] : schemas) {
        const json::value schema = ParseOpenApi(json);
        Named(sink, 1, name, [&] { PutSchemaOrReference(sink, schema.as_object()); });
      }
    });
  });
  sink.Finish();
  return out;
}

std::string GnosticDocumentV3(std::string_view text) {
  const json::value parsed = ParseOpenApi(text);
  const json::object& document = parsed.as_object();
  std::string out;
  Sink sink(out);
  wire::PutBytes(sink, 1, Text(document.at("openapi")));
  const json::object& info = document.at("info").as_object();
  Nested(sink, 2, [&] {
    wire::PutBytes(sink, 1, Text(info.at("title")));
    wire::PutBytes(sink, 6, Text(info.at("version")));
  });
  Nested(sink, 4, [&] {
    for (const auto& path : document.at("paths").as_object()) {
      Named(sink, 1, View(path.key()), [&] { PutPathItem(sink, path.value().as_object()); });
    }
  });
  const json::object& components = document.at("components").as_object();
  Nested(sink, 5, [&] {
    if (const json::value* schemas = components.if_contains("schemas")) {
      Nested(sink, 1, [&] {
        for (const auto& schema : schemas->as_object()) {
          Named(sink, 1, View(schema.key()), [&] { PutSchemaOrReference(sink, schema.value().as_object()); });
        }
      });
    }
    const json::value* schemes = components.if_contains("securitySchemes");
    if (!schemes) return;
    Nested(sink, 7, [&] {
      for (const auto& scheme : schemes->as_object()) {
        Named(sink, 1, View(scheme.key()), [&] { PutSecurityScheme(sink, scheme.value().as_object()); });
      }
    });
  });
  sink.Finish();
  return out;
}

}  // namespace keelson::api
