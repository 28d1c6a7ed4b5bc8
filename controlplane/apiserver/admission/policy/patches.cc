#include "controlplane/apiserver/admission/policy/patches.h"

#include <fmt/format.h>

#include "controlplane/registry/object_shape.h"
#include "lib/api/apply/typed.h"
#include "lib/api/patch/patch.h"
#include "lib/base/text.h"
#include "lib/cel/values/json_view.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver::policy {
namespace {

namespace json = boost::json;
using cel::Value;
using cel::ValueKind;

Error Invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

// Objects below a field have the field's path as their type: Object.spec{} is Object{}.spec.
void CheckTypeNames(const Value& value, const std::string& path, cel::Arena& arena,
                    std::vector<std::string>& problems) {
  if (value.Is(ValueKind::kList)) {
    for (size_t i = 0; i < value.list().Size(); ++i) {
      CheckTypeNames(value.list().At(i, arena), path, arena, problems);
    }
  }
  const bool object = value.Is(ValueKind::kObject);
  if (!object && !value.Is(ValueKind::kMap)) return;
  if (object && value.map().type()->name != path) {
    problems.push_back(fmt::format(
        "unexpected type name {}, expected {}, which matches field name path from root Object type",
        k8s::Quote(value.map().type()->name), k8s::Quote(path)));
  }
  for (size_t i = 0; i < value.map().Size(); ++i) {
    const Value key = value.map().KeyAt(i, arena);
    const bool named = object && key.Is(ValueKind::kString);
    CheckTypeNames(value.map().ValueAt(i, arena), named ? fmt::format("{}.{}", path, key.text()) : path,
                   arena, problems);
  }
}

Result<> CheckTypes(const Value& object, cel::Arena& arena) {
  std::vector<std::string> problems;
  CheckTypeNames(object, std::string(object.map().type()->name), arena, problems);
  if (problems.empty()) return {};
  return Invalid("type mismatch: " + Join(problems, "\n"));
}

// Lists and objects that would change as a whole.
void FindAtomics(const api::Shape& shape, const json::value& value, const std::string& path,
                 std::vector<std::string>& out) {
  if (value.is_object() && shape.kind == api::Shape::Kind::kMap) {
    if (shape.atomic) out.push_back(path);
    for (const auto& member : value.get_object()) {
      const std::string_view name(member.key().data(), member.key().size());
      if (const api::Shape::Field* field = shape.Find(name)) {
        FindAtomics(*field->shape, member.value(), fmt::format("{}.{}", path, name), out);
      }
    }
  } else if (value.is_array() && shape.kind == api::Shape::Kind::kList) {
    if (shape.atomic) out.push_back(path);
    if (!shape.element) return;
    for (size_t i = 0; i < value.get_array().size(); ++i) {
      FindAtomics(*shape.element, value.get_array()[i], fmt::format("{}[{}]", path, i), out);
    }
  }
}

// Problems of a document, as structured-merge-diff prints them.
std::string Printed(const std::vector<std::string>& problems) {
  if (problems.size() == 1) return problems[0];
  return "errors:\n  " + Join(problems, "\n  ");
}

std::string TextField(const Value& operation, std::string_view name, cel::Arena& arena) {
  Value out;
  if (!operation.map().Find(Value::String(name), out, arena) || !out.Is(ValueKind::kString)) return "";
  return std::string(out.text());
}

Result<json::value> OperationOf(const Value& operation, cel::Arena& arena) {
  if (!operation.Is(ValueKind::kObject) || operation.map().type()->name != "JSONPatch") {
    return Invalid("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
  }
  json::object out;
  out["op"] = json::string(TextField(operation, "op", arena));
  out["path"] = json::string(TextField(operation, "path", arena));
  if (const std::string from = TextField(operation, "from", arena); !from.empty()) {
    out["from"] = json::string(from);
  }
  Value value;
  if (operation.map().Find(Value::String("value"), value, arena)) {
    if (value.Is(ValueKind::kObject)) KEELSON_RETURN_IF_ERROR(CheckTypes(value, arena));
    Result<json::value> encoded = cel::ToJson(value, arena);
    if (!encoded) {
      return Invalid("JSONPath valueExpression evaluated to a type that could not marshal to JSON: " +
                     encoded.error().message());
    }
    out["value"] = std::move(*encoded);
  }
  return json::value(std::move(out));
}

}  // namespace

Result<json::value> ApplyConfiguration(const json::value& object, const api::ResourceInfo& row,
                                       const Value& configuration, cel::Arena& arena) {
  if (!configuration.Is(ValueKind::kObject)) {
    return Invalid(fmt::format("unsupported return type from ApplyConfiguration expression: {}",
                               cel::TypeName(configuration)));
  }
  KEELSON_RETURN_IF_ERROR(CheckTypes(configuration, arena));
  Result<json::value> patch = cel::ToJson(configuration, arena);
  if (!patch) return Invalid("invalid return type: " + patch.error().message());
  const api::GroupVersionKind gvk = row.Gvk();
  patch->get_object()["apiVersion"] = json::string(gvk.ApiVersion());
  patch->get_object()["kind"] = json::string(gvk.kind);
  const std::shared_ptr<const api::Shape> shape = registry::ShapeOfRow(row);
  if (const auto problems = api::CheckShape(*shape, *patch, false); !problems.empty()) {
    return Invalid("error applying patch: failed to convert patch object to typed object: " +
                   Printed(problems));
  }
  std::vector<std::string> atomics;
  FindAtomics(*shape, *patch, "", atomics);
  if (!atomics.empty()) {
    return Invalid(
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " +
        Join(atomics, ", "));
  }
  if (const auto problems = api::CheckShape(*shape, object, false); !problems.empty()) {
    return Invalid("error applying patch: failed to convert original object to typed object: " +
                   Printed(problems));
  }
  return api::MergeShaped(*shape, object, *patch);
}

Result<json::value> ApplyPatch(const json::value& object, const Value& patch, cel::Arena& arena) {
  if (!patch.Is(ValueKind::kList)) {
    return Invalid("type mismatch: JSONPatchType.expression should evaluate to array");
  }
  json::array operations;
  for (size_t i = 0; i < patch.list().Size(); ++i) {
    KEELSON_ASSIGN_OR_RETURN(json::value operation, OperationOf(patch.list().At(i, arena), arena));
    operations.push_back(std::move(operation));
  }
  Result<json::value> out = api::ApplyJsonPatch(object, operations);
  if (out) return out;
  if (out.error().message().ends_with("test failed")) return object;
  return Invalid("JSONPath: " + out.error().message());
}

}  // namespace keelson::apiserver::policy
