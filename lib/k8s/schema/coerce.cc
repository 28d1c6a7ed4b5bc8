// Brings the metadata of custom resources and of resources embedded in them into canonical form.
#include <algorithm>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/types.h"
#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/place.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using api::meta::v1::ObjectMeta;

bool IsText(const json::value& value) { return value.is_string() && !value.get_string().empty(); }

bool IsTextMap(const json::value& value) {
  const json::object* object = value.if_object();
  return object && !object->empty() && std::all_of(object->begin(), object->end(), [](const auto& member) {
           return member.value().is_string();
         });
}

bool IsTextList(const json::value& value) {
  const json::array* list = value.if_array();
  return list && !list->empty() &&
         std::all_of(list->begin(), list->end(), [](const json::value& item) { return item.is_string(); });
}

// 2006-01-02T15:04:05Z
bool IsPlainTime(const json::value& value) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  const json::string* text = value.if_string();
  if (!text || text->size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const char c = (*text)[i];
    if (kForm[i] == '0' ? c < '0' || c > '9' : c != kForm[i]) return false;
  }
  return true;
}

// Whether decoding and encoding would not change the metadata: the common case, which needs no copy. May be false
// for some that would not change either.
bool IsCanonical(const json::value& metadata) {
  const json::object* object = metadata.if_object();
  if (!object) return false;
  return std::all_of(object->begin(), object->end(), [](const auto& member) {
    const std::string_view name = View(member.key());
    if (name == "labels" || name == "annotations") return IsTextMap(member.value());
    if (name == "finalizers") return IsTextList(member.value());
    if (name == "generation") return member.value().is_int64() && member.value().get_int64() != 0;
    if (name == "creationTimestamp" || name == "deletionTimestamp") return IsPlainTime(member.value());
    return (name == "name" || name == "namespace" || name == "uid" || name == "resourceVersion" ||
            name == "generateName" || name == "selfLink") &&
           IsText(member.value());
  });
}

// Decodes what can be decoded, field by field.
void DecodeFields(const json::object& metadata, ObjectMeta& meta, std::vector<std::string>* problems) {
  for (const auto& member : metadata) {
    ObjectMeta one;
    api::DecodeReport report;
    json::object field;
    field.emplace(member.key(), member.value());
    if (!api::DecodeJson(json::serialize(field), one, &report)) continue;
    meta.MergeFrom(one);
    if (problems) problems->insert(problems->end(), report.problems.begin(), report.problems.end());
  }
}

// The path in `unknown field "PATH"`; empty for other problems.
std::string_view UnknownPath(std::string_view problem) {
  constexpr std::string_view kPrefix = "unknown field \"";
  if (!problem.starts_with(kPrefix) || !problem.ends_with('"')) return {};
  problem.remove_prefix(kPrefix.size());
  problem.remove_suffix(1);
  return problem;
}

class Coercer {
 public:
  Coercer(const SchemaNodes& nodes, const CoerceOptions& options) : nodes_(nodes), options_(options) {}

  // Decodes and encodes the metadata of an object. Empty, or what is wrong with it.
  std::string CoerceMetadata(json::object& object, const Place& place) {
    json::value* metadata = object.if_contains("metadata");
    if (!metadata || IsCanonical(*metadata)) return "";
    ObjectMeta meta;
    api::DecodeReport report;
    if (Result<> decoded = api::DecodeJson(json::serialize(*metadata), meta, &report); !decoded) {
      if (!options_.drop_invalid_metadata) return decoded.error().message();
      const json::object* fields = metadata->if_object();
      if (!fields) return fmt::format("invalid metadata: expected object, got {}", GoTypeName(*metadata));
      meta.Clear();
      report.problems.clear();
      DecodeFields(*fields, meta, &report.problems);
    }
    const std::string prefix = place.Child("metadata").ToString();
    for (const std::string& problem : report.problems) {
      const std::string_view path = UnknownPath(problem);
      if (!path.empty()) unknown_.push_back(fmt::format("{}.{}", prefix, path));
    }
    json::value coerced = json::parse(api::EncodeJson(meta), object.storage());
    // Only a creation sets it, and a zero time is none.
    const json::value* created = coerced.get_object().if_contains("creationTimestamp");
    if (created && created->is_null()) coerced.get_object().erase("creationTimestamp");
    *metadata = std::move(coerced);
    return "";
  }

  Result<> CoerceBelow(const SchemaNode& node, json::value& value, const Place& place) {
    if (!node.Is(SchemaNode::kEmbeddedBelow)) return {};
    if (json::array* list = value.if_array()) {
      if (node.items == kNoNode) return {};
      for (size_t i = 0; i < list->size(); ++i) {
        KEELSON_RETURN_IF_ERROR(CoerceBelow(nodes_.nodes[node.items], (*list)[i], place.Index(i)));
      }
      return {};
    }
    json::object* object = value.if_object();
    if (!object) return {};
    if (node.Is(SchemaNode::kEmbedded)) KEELSON_RETURN_IF_ERROR(CoerceEmbedded(*object, place));
    for (auto& member : *object) {
      const std::string_view name = View(member.key());
      NodeIndex below = nodes_.Property(node, name);
      const bool named = below != kNoNode;
      if (!named) below = node.additional;
      if (below == kNoNode) continue;
      KEELSON_RETURN_IF_ERROR(
          CoerceBelow(nodes_.nodes[below], member.value(), named ? place.Child(name) : place.Key(name)));
    }
    return {};
  }

  std::vector<std::string> TakeUnknown() {
    std::sort(unknown_.begin(), unknown_.end());
    return std::exchange(unknown_, {});
  }

 private:
  Result<> CoerceEmbedded(json::object& object, const Place& place) {
    for (const char* name : {"apiVersion", "kind"}) {
      const json::value* value = object.if_contains(name);
      if (!value || value->is_string()) continue;
      if (!options_.drop_invalid_metadata) return Problem(place.Child(name), *value, "must be a string");
      object.stable_erase(name);
    }
    const std::string problem = CoerceMetadata(object, place);
    if (problem.empty() || options_.drop_invalid_metadata) return {};
    return Problem(place.Child("metadata"), *object.if_contains("metadata"), problem);
  }

  static Error Problem(const Place& place, const json::value& value, std::string_view detail) {
    const FieldError error{FieldError::Type::kInvalid, place.ToField(), PrintBadValue(value),
                           std::string(detail)};
    return Error(Code::kBadRequest, error.ToString());
  }

  static const char* GoTypeName(const json::value& value) {
    if (value.is_string()) return "string";
    if (value.is_bool()) return "bool";
    if (value.is_array()) return "[]interface {}";
    return value.is_double() ? "float64" : value.is_null() ? "<nil>" : "int64";
  }

  const SchemaNodes& nodes_;
  const CoerceOptions& options_;
  std::vector<std::string> unknown_;
};

}  // namespace

Result<> DropInvalidMetadata(json::value& object) {
  const SchemaNodes no_schema;
  CoerceOptions options;
  options.drop_invalid_metadata = true;
  const std::string problem = Coercer(no_schema, options).CoerceMetadata(object.as_object(), Place());
  return problem.empty() ? Result<>() : Error(Code::kBadRequest, problem);
}

Result<std::vector<std::string>> CoerceObject(const StructuralSchema& schema, json::value& object,
                                              const CoerceOptions& options) {
  Coercer coercer(schema.nodes(), options);
  const std::string problem = coercer.CoerceMetadata(object.as_object(), Place());
  if (!problem.empty()) return Error(Code::kBadRequest, problem);
  std::vector<std::string> unknown = coercer.TakeUnknown();
  const auto add = [&](std::vector<std::string> more) {
    unknown.insert(unknown.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  if (!options.preserve_unknown_fields) {
    add(PruneObject(schema, object));
    PruneNulls(schema, object);
  }
  KEELSON_RETURN_IF_ERROR(coercer.CoerceBelow(schema.nodes().root_node(), object, Place()));
  add(coercer.TakeUnknown());
  for (std::string& path : unknown) path = fmt::format("unknown field \"{}\"", path);
  return unknown;
}

}  // namespace keelson::k8s
