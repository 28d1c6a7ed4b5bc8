#include <algorithm>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "lib/api/type_table.h"
#include "lib/cel/syntax/escaping.h"
#include "lib/cel/values/message_view.h"

namespace keelson::cel {
namespace {

// Schemas of CustomResourceDefinitions contain themselves; nothing else is as deep.
constexpr size_t kDeepest = 16;

class TypeBuilder {
 public:
  DeclTypePtr Object(const api::MessageInfo& info, const std::string& name, bool type_meta) {
    above_.push_back(&info);
    std::vector<DeclField> fields;
    if (type_meta) {
      fields.push_back({"apiVersion", "apiVersion", DeclType::String(), false, false});
      fields.push_back({"kind", "kind", DeclType::String(), false, false});
    }
    for (const api::JsonKey& key : info.keys) {
      std::string json_name(key.field->json_name);
      const bool declared = type_meta && (json_name == "kind" || json_name == "apiVersion");
      auto escaped = EscapeFieldName(json_name);
      if (declared || !escaped) continue;
      fields.push_back({json_name, *escaped, Field(*key.field, name + "." + json_name), false, false});
    }
    above_.pop_back();
    return DeclType::Object(name, std::move(fields), true);
  }

 private:
  DeclTypePtr Field(const api::FieldInfo& field, const std::string& name) {
    DeclTypePtr item = Item(field, name);
    if (field.map) return DeclType::Map(std::move(item), {}, true);
    return field.repeated ? DeclType::List(std::move(item), {}, ListSemantics::kAtomic, {}, true) : item;
  }

  DeclTypePtr Item(const api::FieldInfo& field, const std::string& name) {
    switch (field.kind) {
      case api::ValueKind::kString:
      case api::ValueKind::kBytes:
        return DeclType::String({}, true);
      case api::ValueKind::kBool:
        return DeclType::Bool(true);
      case api::ValueKind::kInt32:
      case api::ValueKind::kInt64:
        return DeclType::Int(true);
      case api::ValueKind::kDouble:
        return DeclType::Double(true);
      case api::ValueKind::kMessage:
        break;
    }
    return OfMessage(*field.message, name, !field.type_meta.empty());
  }

  // `type_meta`: objects of the type have kind and apiVersion.
  DeclTypePtr OfMessage(const api::MessageInfo& info, const std::string& name, bool type_meta) {
    switch (info.form) {
      case api::JSON_OBJECT:
        if (std::find(above_.begin(), above_.end(), &info) != above_.end() || above_.size() > kDeepest) {
          return DeclType::Dyn();
        }
        return Object(info, name, type_meta);
      case api::JSON_TIME:
      case api::JSON_MICRO_TIME:
      case api::JSON_DURATION:
        return DeclType::String({}, true);
      case api::JSON_LIST:
        return DeclType::List(Item(info.fields.front(), name));
      case api::JSON_INT_OR_STRING:
      case api::JSON_QUANTITY:
        return DeclType::IntOrString({}, true);
      default:
        return DeclType::Dyn();
    }
  }

  std::vector<const api::MessageInfo*> above_;
};

}  // namespace

DeclTypePtr MessageType(const google::protobuf::Descriptor* descriptor, std::string_view name, bool root) {
  return TypeBuilder().Object(api::InfoOf(descriptor), std::string(name), root);
}

}  // namespace keelson::cel
