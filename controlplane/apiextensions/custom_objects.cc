#include "controlplane/apiextensions/custom_objects.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/base/log.h"
#include "lib/k8s/schema/rules.h"
#include "lib/k8s/validation/extension/embedded.h"

namespace keelson::apiextensions {
namespace {

namespace json = boost::json;

struct Schema {
  std::shared_ptr<const k8s::StructuralSchema> compiled;  // null: none
  bool keep_unknown = false;
};

Schema SchemaOf(const CustomRow& row) {
  std::shared_ptr<const Definition> definition = row.owner->definition();
  const Version* version = definition ? definition->Find(row.version) : nullptr;
  if (!version) return {};
  return {version->Schema(), definition->preserve_unknown_fields};
}

// No schema and no rule can look at managed fields.
Result<json::value> Tree(const CustomRow& row, const Message& object) {
  KEELSON_ASSIGN_OR_RETURN(json::object tree, api::UnmanagedTreeOf(object, row.main->Gvk()));
  return json::value(std::move(tree));
}

// The object as its schema sees it. Metadata is a message, which is in canonical form already.
json::value Shown(const CustomRow& row, json::object content) {
  const api::GroupVersionKind gvk = row.main->Gvk();
  content["apiVersion"] = gvk.ApiVersion();
  content["kind"] = gvk.kind;
  content["metadata"] = json::object();
  return json::value(std::move(content));
}

json::object Hidden(json::value tree) {
  json::object content = std::move(tree.get_object());
  for (const char* name : {"apiVersion", "kind", "metadata"}) content.erase(name);
  return content;
}

// As CoerceContent(). `from_storage`: embedded metadata of a wrong type is dropped instead of being an error.
Result<std::vector<std::string>> Follow(const CustomRow& row, bool from_storage, json::object content,
                                        Message& object) {
  const Schema schema = SchemaOf(row);
  std::vector<std::string> unknown;
  if (schema.compiled) {
    json::value tree = Shown(row, std::move(content));
    k8s::CoerceOptions options;
    options.drop_invalid_metadata = from_storage;
    options.preserve_unknown_fields = schema.keep_unknown;
    KEELSON_ASSIGN_OR_RETURN(unknown, k8s::CoerceObject(*schema.compiled, tree, options));
    k8s::DefaultObject(*schema.compiled, tree);
    content = Hidden(std::move(tree));
  }
  api::SetContent(object, content);
  return unknown;
}

// The object in `text` without those parts of its metadata that have a wrong type. kBadRequest: it is no object.
Result<std::unique_ptr<Message>> DecodeDamaged(std::string_view text) {
  KEELSON_ASSIGN_OR_RETURN(json::value tree, api::ParseTree(text));
  if (!tree.is_object()) return Error(Code::kBadRequest, "no object");
  KEELSON_RETURN_IF_ERROR(k8s::DropInvalidMetadata(tree));
  return api::FromTree(std::move(tree.get_object()));
}

}  // namespace

Result<std::vector<std::string>> CoerceContent(const CustomRow& row, json::object content, Message& object) {
  return Follow(row, false, std::move(content), object);
}

Result<std::vector<std::string>> Coerce(const CustomRow& row, Message& object) {
  KEELSON_ASSIGN_OR_RETURN(json::object content, api::ContentOf(object));
  return CoerceContent(row, std::move(content), object);
}

void SetDefaults(const CustomRow& row, Message& object) {
  const Schema schema = SchemaOf(row);
  if (!schema.compiled || !schema.compiled->has_defaults()) return;
  Result<json::object> content = api::ContentOf(object);
  if (!content) return;  // too deep, which validation reports
  json::value tree = Shown(row, *std::move(content));
  k8s::DefaultObject(*schema.compiled, tree);
  api::SetContent(object, Hidden(std::move(tree)));
}

Result<std::unique_ptr<Message>> ReadStored(const CustomRow& row, std::string_view text,
                                            const CustomRow*& stored) {
  auto bad = [](std::string_view why) { return Error(Code::kInternal, fmt::format("stored object{}", why)); };
  std::unique_ptr<Message> object = api::NewObject(row.descriptor());
  api::TypeMeta type;
  if (Result<> decoded = api::DecodeJson(text, *object, nullptr, &type); !decoded) {
    if (Result<api::TypeMeta> found = api::PeekTypeMeta(text)) type = std::move(*found);
    Result<std::unique_ptr<Message>> rest = DecodeDamaged(text);
    if (!rest) return bad(": " + rest.error().message());
    object = std::move(*rest);
  }
  if (type.kind.empty() || type.api_version.empty()) return bad(": Object 'Kind' is missing");
  if (type.kind != row.kind) return bad(fmt::format(" is a {}, not a {}", type.kind, row.kind));
  auto [group, version] = api::SplitApiVersion(type.api_version);
  if (group != row.group || version.empty()) {
    return bad(" is of API version " + type.api_version);
  }
  stored = &row.owner->Row(version);
  Result<json::object> content = api::ContentOf(*object);
  if (!content) return bad(": " + content.error().message());
  if (Result<std::vector<std::string>> done = Follow(*stored, true, std::move(*content), *object); !done) {
    return bad(": " + done.error().message());
  }
  return object;
}

std::unique_ptr<Message> Relabel(const CustomRow& to, const Message& object) {
  std::unique_ptr<Message> copy(object.New());
  copy->CopyFrom(object);
  if (Result<std::vector<std::string>> coerced = Coerce(to, *copy); !coerced) {
    log::Warn("Cannot apply a schema to a converted object",
              {{"resource", to.resource}, {"version", to.version}, {"err", coerced.error()}});
    copy->CopyFrom(object);
  }
  return copy;
}

k8s::FieldErrors Validate(const CustomRow& row, const Message& object, const Message* old, bool status_only) {
  const Schema schema = SchemaOf(row);
  if (!schema.compiled) return {};
  Result<json::value> tree = Tree(row, object);
  if (!tree) return {k8s::InvalidRaw(k8s::Path("metadata"), "\"\"", tree.error().message())};
  std::optional<json::value> before;
  if (old) {
    if (Result<json::value> old_tree = Tree(row, *old)) before = std::move(*old_tree);
  }
  const json::value* old_tree = before ? &*before : nullptr;
  k8s::FieldErrors errors = k8s::ValidateSchema(*schema.compiled, *tree, old_tree);
  for (k8s::FieldError& error : k8s::ValidateEmbeddedObjects(*schema.compiled, *tree)) {
    errors.push_back(std::move(error));
  }
  for (k8s::FieldError& error : k8s::ValidateListTypes(*schema.compiled, *tree, old_tree)) {
    errors.push_back(std::move(error));
  }
  if (status_only) {
    // Rules count wherever they stand: a change of status may break one of the whole object.
    std::erase_if(errors, [](const k8s::FieldError& error) {
      return !(error.field == "status" || error.field.starts_with("status.") ||
               error.field.starts_with("status["));
    });
  }
  if (schema.compiled->has_rules()) k8s::ValidateRules(*schema.compiled, *tree, old_tree, errors);
  return errors;
}

std::string SelectableValue(const Message& object, std::string_view field) {
  Result<json::object> content = api::ContentOf(object);
  if (!content) return "";
  const json::object* at = &*content;
  for (std::string_view rest = field;;) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view name = rest.substr(0, dot);
    const json::value* value = at->if_contains(json::string_view(name.data(), name.size()));
    if (!value) return "";
    if (dot == rest.size()) {
      if (const auto* text = value->if_string()) return std::string(text->data(), text->size());
      return value->is_primitive() && !value->is_null() ? api::CanonicalJson(*value) : "";
    }
    at = value->if_object();
    if (!at) return "";
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace keelson::apiextensions
