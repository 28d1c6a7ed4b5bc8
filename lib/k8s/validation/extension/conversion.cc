#include "lib/k8s/validation/extension/conversion.h"

#include <fmt/format.h>
#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {
namespace {

namespace json = boost::json;

Error Wrong(std::string message) { return Error(Code::kInternal, std::move(message)); }

// The type as Go prints it.
std::string_view GoType(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "<nil>";
    case json::kind::bool_:
      return "bool";
    case json::kind::int64:
    case json::kind::uint64:
      return "int64";
    case json::kind::double_:
      return "float64";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "[]interface {}";
    case json::kind::object:
      return "map[string]interface {}";
  }
  return "";
}

// A string in metadata; empty when it is absent or no string.
std::string_view MetaText(const json::object& object, std::string_view field) {
  const json::value* meta = object.if_contains("metadata");
  const json::object* members = meta ? meta->if_object() : nullptr;
  const json::value* value = members ? members->if_contains(field) : nullptr;
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

// Several errors as Go's aggregates print them.
Result<> Aggregate(const FieldErrors& errors) {
  if (errors.empty()) return {};
  if (errors.size() == 1) return Wrong(errors[0].ToString());
  std::string all;
  for (const FieldError& error : errors) all += (all.empty() ? "" : ", ") + error.ToString();
  return Wrong("[" + all + "]");
}

// One of labels and annotations, as the webhook returned it. `is_new` says whether it differs from the original.
Result<StringMap> ReadMap(const json::object& meta, const char* field, const StringMap& original,
                          bool& is_new) {
  StringMap out;
  const json::value* value = meta.if_contains(field);
  if (value && !value->is_null()) {
    const json::object* members = value->if_object();
    if (!members) {
      return Wrong(fmt::format("invalid metadata.{} of type {} in converted object", field, GoType(*value)));
    }
    for (const auto& member : *members) {
      const std::string key(member.key());
      if (!member.value().is_string()) {
        return Wrong(fmt::format("metadata.{}[{}] must be a string, but is {} in converted object", field,
                                 key, GoType(member.value())));
      }
      out[key] = std::string(std::string_view(member.value().get_string()));
    }
  }
  is_new = !SameMap(out, original);
  return out;
}

}  // namespace

Result<> ValidateConvertedObject(const metav1::ObjectMeta& original, const json::object& converted) {
  const struct {
    const char* what;
    std::string_view expected, got;
  } kSame[] = {{"name", original.name(), MetaText(converted, "name")},
               {"namespace", original.namespace_(), MetaText(converted, "namespace")},
               {"UID", original.uid(), MetaText(converted, "uid")}};
  for (const auto& one : kSame) {
    if (one.expected == one.got) continue;
    return Wrong(fmt::format("must have the same {}: {} != {}", one.what, one.expected, one.got));
  }
  return {};
}

Result<> RestoreObjectMeta(const metav1::ObjectMeta& original, json::object& converted) {
  const json::value* value = converted.if_contains("metadata");
  if (!value) return Wrong("missing metadata in converted object");
  const json::object* returned = value->if_object();
  if (!returned) {
    return Wrong(fmt::format("invalid metadata of type {} in converted object", GoType(*value)));
  }
  metav1::ObjectMeta meta = original;
  bool is_new = false;
  KEELSON_ASSIGN_OR_RETURN(StringMap labels, ReadMap(*returned, "labels", original.labels(), is_new));
  if (is_new) {
    FieldErrors errors;
    CheckLabels(labels, Path("metadata").Child("labels"), errors);
    KEELSON_RETURN_IF_ERROR(Aggregate(errors));
  }
  KEELSON_ASSIGN_OR_RETURN(StringMap annotations,
                           ReadMap(*returned, "annotations", original.annotations(), is_new));
  if (is_new) {
    FieldErrors errors;
    CheckAnnotations(annotations, Path("metadata").Child("annotation"), errors);  // the path is upstream's
    KEELSON_RETURN_IF_ERROR(Aggregate(errors));
  }
  *meta.mutable_labels() = std::move(labels);
  *meta.mutable_annotations() = std::move(annotations);
  converted["metadata"] = json::parse(api::EncodeJson(meta));
  return {};
}

}  // namespace keelson::k8s
