#include "lib/k8s/schema/decl_types.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/cel/syntax/escaping.h"

namespace keelson::k8s {

namespace {

using cel::DeclType;
using cel::DeclTypePtr;

std::optional<int64_t> Limit(const ValueChecks* checks, ValueChecks::Has which, int64_t value) {
  if (!checks || !(checks->has & which)) return std::nullopt;
  return value;
}

DeclTypePtr MetadataType() {
  static const DeclTypePtr type = DeclType::Object(
      "selfType.metadata",
      {{"name", "name", DeclType::String()}, {"generateName", "generateName", DeclType::String()}});
  return type;
}

}  // namespace

DeclTypePtr DeclTypes::Get(NodeIndex index, bool is_object) {
  auto [it, added] = made_.try_emplace({index, is_object});
  if (!added) return it->second;
  DeclTypePtr type = Make(index, is_object);
  made_[{index, is_object}] = type;
  return type;
}

DeclTypePtr DeclTypes::Make(NodeIndex index, bool is_object) {
  const SchemaNode& node = nodes_.nodes[index];
  const bool nullable = node.Is(SchemaNode::kNullable);
  switch (node.type) {
    case SchemaType::kAny:
      return nullptr;
    case SchemaType::kIntOrString:
      return DeclType::IntOrString({}, nullable);
    case SchemaType::kBoolean:
      return DeclType::Bool(nullable);
    case SchemaType::kInteger:
      return DeclType::Int(nullable);
    case SchemaType::kNumber:
      return DeclType::Double(nullable);
    case SchemaType::kString:
      return MakeString(node);
    case SchemaType::kArray:
      return MakeList(node);
    case SchemaType::kObject:
      return MakeObject(index, is_object);
  }
  return nullptr;
}

DeclTypePtr DeclTypes::MakeString(const SchemaNode& node) const {
  const bool nullable = node.Is(SchemaNode::kNullable);
  const ValueChecks* checks = ChecksOf(node);
  const std::optional<int64_t> longest =
      checks ? Limit(checks, ValueChecks::kMaxLength, checks->max_length) : std::nullopt;
  const std::string_view format = nodes_.Text(node.format);
  if (format == "byte") return DeclType::Bytes(longest, nullable);
  if (format == "duration") return DeclType::Duration(nullable);
  if (format == "date") return DeclType::Date(nullable);
  if (format == "date-time") return DeclType::DateTime(nullable);
  DeclType::StringLimits limits{longest, std::nullopt};
  if (!longest && checks && checks->enums.size > 0) {
    int64_t longest_value = 0;
    for (uint32_t i = 0; i < checks->enums.size; ++i) {
      const boost::json::string* text = nodes_.values[checks->enums.begin + i].if_string();
      if (text) longest_value = std::max(longest_value, static_cast<int64_t>(text->size()));
    }
    limits.longest_enum = longest_value;
  }
  return DeclType::String(limits, nullable);
}

DeclTypePtr DeclTypes::MakeList(const SchemaNode& node) {
  if (node.items == kNoNode) return nullptr;
  DeclTypePtr element = Get(node.items, nodes_.nodes[node.items].Is(SchemaNode::kEmbedded));
  if (!element) return nullptr;
  const ValueChecks* checks = ChecksOf(node);
  cel::ListSemantics semantics = cel::ListSemantics::kAtomic;
  if (node.list_type == SchemaListType::kSet) semantics = cel::ListSemantics::kSet;
  if (node.list_type == SchemaListType::kMap) semantics = cel::ListSemantics::kMap;
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < node.map_keys.size; ++i) keys.emplace_back(nodes_.Name(node.map_keys, i));
  return DeclType::List(std::move(element),
                        checks ? Limit(checks, ValueChecks::kMaxItems, checks->max_items) : std::nullopt,
                        semantics, std::move(keys), node.Is(SchemaNode::kNullable));
}

DeclTypePtr DeclTypes::MakeObject(NodeIndex index, bool is_object) {
  const SchemaNode& node = nodes_.nodes[index];
  const bool nullable = node.Is(SchemaNode::kNullable);
  if (node.additional != kNoNode) {
    DeclTypePtr value = Get(node.additional, nodes_.nodes[node.additional].Is(SchemaNode::kEmbedded));
    if (!value) return nullptr;
    const ValueChecks* checks = ChecksOf(node);
    return DeclType::Map(
        std::move(value),
        checks ? Limit(checks, ValueChecks::kMaxProperties, checks->max_properties) : std::nullopt, nullable);
  }
  std::vector<cel::DeclField> fields;
  const auto is_required = [&](std::string_view name) {
    for (uint32_t i = 0; i < node.required.size; ++i) {
      if (nodes_.Name(node.required, i) == name) return true;
    }
    return false;
  };
  for (uint32_t i = 0; i < node.properties.size; ++i) {
    const SchemaProperty& property = nodes_.properties[node.properties.begin + i];
    const std::string_view name = nodes_.Text(property.name);
    if (is_object && IsMetaField(name)) continue;
    const SchemaNode& below = nodes_.nodes[property.node];
    DeclTypePtr type = Get(property.node, below.Is(SchemaNode::kEmbedded));
    if (!type) continue;
    fields.push_back({std::string(name), cel::EscapeFieldName(name).value_or(""), std::move(type),
                      is_required(name), below.default_value != kNothing});
  }
  if (is_object) {
    fields.push_back({"apiVersion", "apiVersion", DeclType::String()});
    fields.push_back({"kind", "kind", DeclType::String()});
    fields.push_back({"metadata", "metadata", MetadataType()});
  }
  return DeclType::Object(fmt::format("selfType{}{}", index, is_object ? "o" : ""), std::move(fields),
                          nullable);
}

cel::EnvPtr RuleEnvironment(const DeclTypePtr& self, bool optional_old, bool stored) {
  cel::EnvOptions options;
  options.version = stored ? cel::kStoredExpressions : cel::kNewExpressions;
  DeclTypePtr old = self;
  if (optional_old) {
    cel::TypePool pool;
    old = DeclType::Native(pool.Optional(self->type()));
  }
  options.variables = {{"self", self}, {"oldSelf", old}};
  return cel::Env::Make(std::move(options));
}

}  // namespace keelson::k8s
