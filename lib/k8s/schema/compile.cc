// Compiles the schema of a version. Equal parts become one node.
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <re2/re2.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/k8s/schema/formats.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using Props = api::apiextensions::v1::JSONSchemaProps;

Error Unsupported(std::string_view what) {
  return Error(Code::kInvalid, fmt::format("OpenAPIV3Schema '{}' is not supported", what));
}

Result<> CheckSupported(const Props& props) {
  if (!props.id().empty()) return Unsupported("id");
  if (!props.schema().empty()) return Unsupported("schema");
  if (!props.ref().empty()) return Unsupported("$ref");
  if (!props.pattern_properties().empty()) return Unsupported("patternProperties");
  if (!props.dependencies().empty()) return Unsupported("dependencies");
  if (props.has_additional_items()) return Unsupported("additionalItems");
  if (!props.definitions().empty()) return Unsupported("definitions");
  if (!props.items().json_schemas().empty()) {
    return Error(Code::kInvalid, "OpenAPIV3Schema 'items' must be a schema, but is an array");
  }
  if (props.has_x_kubernetes_preserve_unknown_fields() && !props.x_kubernetes_preserve_unknown_fields()) {
    return Error(Code::kInvalid,
                 "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined");
  }
  return {};
}

SchemaType TypeOf(const Props& props) {
  if (props.x_kubernetes_int_or_string()) return SchemaType::kIntOrString;
  constexpr std::pair<std::string_view, SchemaType> kTypes[] = {
      {"object", SchemaType::kObject},   {"array", SchemaType::kArray},   {"string", SchemaType::kString},
      {"integer", SchemaType::kInteger}, {"number", SchemaType::kNumber}, {"boolean", SchemaType::kBoolean}};
  for (const auto& [name, type] : kTypes) {
    if (props.type() == name) return type;
  }
  return SchemaType::kAny;
}

SchemaListType ListTypeOf(const Props& props) {
  const std::string& type = props.x_kubernetes_list_type();
  if (type == "atomic") return SchemaListType::kAtomic;
  if (type == "set") return SchemaListType::kSet;
  return type == "map" ? SchemaListType::kMap : SchemaListType::kUnset;
}

class Compiler {
 public:
  Compiler() : out_(std::make_unique<SchemaNodes>()) {}

  Result<std::unique_ptr<SchemaNodes>> Compile(const Props& root) {
    KEELSON_ASSIGN_OR_RETURN(out_->root, Node(root, 0));
    SchemaNodes& all = *out_;
    all.nodes.shrink_to_fit();
    all.properties.shrink_to_fit();
    all.names.shrink_to_fit();
    all.checks.shrink_to_fit();
    all.branches.shrink_to_fit();
    all.values.shrink_to_fit();
    all.rules.shrink_to_fit();
    all.text.shrink_to_fit();
    // Only now the text keeps its place.
    for (const TextRef& pattern : patterns_) all.patterns.emplace_back(all.Text(pattern));
    return std::move(out_);
  }

 private:
  Result<NodeIndex> Node(const Props& props, int depth) {
    if (depth > StructuralSchema::kMaxDepth) {
      return Error(Code::kInvalid,
                   fmt::format("OpenAPIV3Schema nests deeper than {} levels", StructuralSchema::kMaxDepth));
    }
    if (++count_ > StructuralSchema::kMaxNodes) {
      return Error(Code::kInvalid,
                   fmt::format("OpenAPIV3Schema has more than {} parts", StructuralSchema::kMaxNodes));
    }
    KEELSON_RETURN_IF_ERROR(CheckSupported(props));
    SchemaNode node;
    node.type = TypeOf(props);
    node.list_type = ListTypeOf(props);
    const auto flag = [&](bool set, SchemaNode::Flag which) {
      if (set) node.flags |= which;
    };
    flag(props.nullable(), SchemaNode::kNullable);
    flag(props.x_kubernetes_preserve_unknown_fields(), SchemaNode::kPreserve);
    flag(props.x_kubernetes_embedded_resource(), SchemaNode::kEmbedded);
    flag(props.x_kubernetes_embedded_resource(), SchemaNode::kEmbeddedBelow);
    flag(props.x_kubernetes_map_type() == "atomic", SchemaNode::kMapAtomic);
    flag(node.list_type == SchemaListType::kSet || node.list_type == SchemaListType::kMap,
         SchemaNode::kListsBelow);
    flag(!props.x_kubernetes_validations().empty(), SchemaNode::kRulesBelow);
    if (IsCheckedFormat(props.format(), node.type)) node.format = Intern(props.format());
    KEELSON_RETURN_IF_ERROR(Children(props, node, depth));
    node.required = Names(props.required());
    node.map_keys = Names(props.x_kubernetes_list_map_keys());
    KEELSON_ASSIGN_OR_RETURN(node.checks, Checks(props, depth));
    if (props.has_default_()) {
      KEELSON_ASSIGN_OR_RETURN(json::value value, Parse(props.default_().raw()));
      PruneValue(*out_, node, value);
      if (!value.is_null()) node.default_value = AddValue(std::move(value));
    }
    node.rules = Rules(props);
    return Share(nodes_, out_->nodes, node);
  }

  Result<> Children(const Props& props, SchemaNode& node, int depth) {
    const auto child = [&](const Props& below) -> Result<NodeIndex> {
      KEELSON_ASSIGN_OR_RETURN(NodeIndex index, Node(below, depth + 1));
      const SchemaNode& made = out_->nodes[index];
      constexpr uint16_t kInherited = SchemaNode::kDefaultsBelow | SchemaNode::kEmbeddedBelow |
                                      SchemaNode::kListsBelow | SchemaNode::kRulesBelow;
      node.flags |= made.flags & kInherited;
      if (made.default_value != kNothing) node.flags |= SchemaNode::kDefaultsBelow;
      return index;
    };
    if (props.items().has_schema()) {
      KEELSON_ASSIGN_OR_RETURN(node.items, child(props.items().schema()));
    }
    if (props.has_additional_properties()) {
      const auto& additional = props.additional_properties();
      node.flags |= SchemaNode::kAdditional;
      if (additional.has_schema()) {
        KEELSON_ASSIGN_OR_RETURN(node.additional, child(additional.schema()));
      } else if (!additional.allows()) {
        node.flags |= SchemaNode::kAdditionalForbidden;
      }
    }
    std::map<std::string_view, NodeIndex> sorted;
    for (const auto& [name, below] : props.properties()) {
      KEELSON_ASSIGN_OR_RETURN(sorted[name], child(below));
    }
    std::vector<SchemaProperty> list;
    list.reserve(sorted.size());
    for (const auto& [name, index] : sorted) list.push_back({Intern(name), index});
    node.properties = Append(out_->properties, list);
    return {};
  }

  Result<uint32_t> Checks(const Props& props, int depth) {
    ValueChecks checks;
    const auto limit = [&](bool set, auto& field, auto value, ValueChecks::Has which) {
      if (!set) return;
      field = value;
      checks.has |= which;
    };
    limit(props.has_maximum(), checks.maximum, props.maximum(), ValueChecks::kMaximum);
    limit(props.has_minimum(), checks.minimum, props.minimum(), ValueChecks::kMinimum);
    limit(props.has_multiple_of(), checks.multiple_of, props.multiple_of(), ValueChecks::kMultipleOf);
    limit(props.has_max_length(), checks.max_length, props.max_length(), ValueChecks::kMaxLength);
    limit(props.has_min_length(), checks.min_length, props.min_length(), ValueChecks::kMinLength);
    limit(props.has_max_items(), checks.max_items, props.max_items(), ValueChecks::kMaxItems);
    limit(props.has_min_items(), checks.min_items, props.min_items(), ValueChecks::kMinItems);
    limit(props.has_max_properties(), checks.max_properties, props.max_properties(),
          ValueChecks::kMaxProperties);
    limit(props.has_min_properties(), checks.min_properties, props.min_properties(),
          ValueChecks::kMinProperties);
    if (props.exclusive_maximum()) checks.has |= ValueChecks::kExclusiveMaximum;
    if (props.exclusive_minimum()) checks.has |= ValueChecks::kExclusiveMinimum;
    if (props.unique_items()) checks.has |= ValueChecks::kUniqueItems;
    if (!props.pattern().empty()) {
      KEELSON_ASSIGN_OR_RETURN(checks.pattern, Pattern(props.pattern()));
    }
    KEELSON_ASSIGN_OR_RETURN(checks.enums, Enums(props));
    KEELSON_ASSIGN_OR_RETURN(checks.all_of, Branches(props.all_of(), depth));
    KEELSON_ASSIGN_OR_RETURN(checks.any_of, Branches(props.any_of(), depth));
    KEELSON_ASSIGN_OR_RETURN(checks.one_of, Branches(props.one_of(), depth));
    if (props.has_not_()) {
      KEELSON_ASSIGN_OR_RETURN(checks.not_, Node(props.not_(), depth + 1));
    }
    const bool none = checks.has == 0 && checks.pattern == kNothing && checks.enums.size == 0 &&
                      checks.all_of.size == 0 && checks.any_of.size == 0 && checks.one_of.size == 0 &&
                      checks.not_ == kNoNode;
    return none ? kNothing : Share(checks_, out_->checks, checks);
  }

  Result<TableRange> Branches(const google::protobuf::RepeatedPtrField<Props>& schemas, int depth) {
    std::vector<NodeIndex> list;
    for (const Props& schema : schemas) {
      KEELSON_ASSIGN_OR_RETURN(NodeIndex index, Node(schema, depth + 1));
      list.push_back(index);
    }
    return Append(out_->branches, list);
  }

  Result<uint32_t> Pattern(const std::string& text) {
    auto [it, added] = pattern_index_.try_emplace(text, static_cast<uint32_t>(patterns_.size()));
    if (!added) return it->second;
    // The program is made again on first use: most patterns are never used.
    re2::RE2::Options options;
    options.set_log_errors(false);
    const re2::RE2 program(text, options);
    if (!program.ok()) {
      return Error(Code::kInvalid, fmt::format("pattern {} is invalid: {}", text, program.error()));
    }
    patterns_.push_back(Intern(text));
    return it->second;
  }

  Result<TableRange> Enums(const Props& props) {
    if (props.enum_().empty()) return TableRange();
    std::string key;
    for (const auto& one : props.enum_()) key += one.raw() + "\n";
    auto it = enums_.find(key);
    if (it != enums_.end()) return it->second;
    TableRange range{static_cast<uint32_t>(out_->values.size()), static_cast<uint32_t>(props.enum__size())};
    for (const auto& one : props.enum_()) {
      KEELSON_ASSIGN_OR_RETURN(json::value value, Parse(one.raw()));
      out_->values.push_back(std::move(value));
    }
    enums_.emplace(std::move(key), range);
    return range;
  }

  static Result<json::value> Parse(const std::string& text) {
    json::error_code error;
    json::value value = json::parse(text, error);
    if (error) return Error(Code::kInvalid, "OpenAPIV3Schema holds malformed JSON: " + error.message());
    return value;
  }

  uint32_t AddValue(json::value value) {
    auto [it, added] =
        values_.try_emplace(json::serialize(value), static_cast<uint32_t>(out_->values.size()));
    if (added) out_->values.push_back(std::move(value));
    return it->second;
  }

  TableRange Rules(const Props& props) {
    std::vector<SchemaRule> list;
    for (const auto& rule : props.x_kubernetes_validations()) {
      SchemaRule& one = list.emplace_back();
      one.rule = Intern(rule.rule());
      one.message = Intern(rule.message());
      one.message_expression = Intern(rule.message_expression());
      one.reason = Intern(rule.reason());
      one.field_path = Intern(rule.field_path());
      one.has_optional_old_self = rule.has_optional_old_self();
      one.optional_old_self = rule.optional_old_self();
    }
    return Append(out_->rules, list);
  }

  template <typename List>
  TableRange Names(const List& names) {
    std::vector<TextRef> list;
    for (const std::string& name : names) list.push_back(Intern(name));
    return Append(out_->names, list);
  }

  TextRef Intern(std::string_view text) {
    if (text.empty()) return {};
    auto [it, added] = texts_.try_emplace(std::string(text));
    if (added) {
      it->second = {static_cast<uint32_t>(out_->text.size()), static_cast<uint32_t>(text.size())};
      out_->text += text;
    }
    return it->second;
  }

  // The bytes of an item, without its padding: items are filled field by field into zeroed memory.
  template <typename Item>
  static void AddKey(const Item& item, std::string& key) {
    static_assert(std::is_trivially_copyable_v<Item>);
    Item clean;
    std::memset(static_cast<void*>(&clean), 0, sizeof(clean));
    CopyFields(item, clean);
    key.append(reinterpret_cast<const char*>(&clean), sizeof(clean));
  }
  static void CopyFields(NodeIndex from, NodeIndex& to) { to = from; }
  static void CopyFields(const TextRef& from, TextRef& to) { to.begin = from.begin, to.size = from.size; }
  static void CopyFields(const TableRange& from, TableRange& to) {
    to.begin = from.begin, to.size = from.size;
  }
  static void CopyFields(const SchemaProperty& from, SchemaProperty& to) {
    CopyFields(from.name, to.name);
    to.node = from.node;
  }
  static void CopyFields(const SchemaRule& from, SchemaRule& to) {
    CopyFields(from.rule, to.rule);
    CopyFields(from.message, to.message);
    CopyFields(from.message_expression, to.message_expression);
    CopyFields(from.reason, to.reason);
    CopyFields(from.field_path, to.field_path);
    to.optional_old_self = from.optional_old_self;
    to.has_optional_old_self = from.has_optional_old_self;
  }
  static void CopyFields(const ValueChecks& from, ValueChecks& to) {
    to.maximum = from.maximum, to.minimum = from.minimum, to.multiple_of = from.multiple_of;
    to.max_length = from.max_length, to.min_length = from.min_length;
    to.max_items = from.max_items, to.min_items = from.min_items;
    to.max_properties = from.max_properties, to.min_properties = from.min_properties;
    to.pattern = from.pattern, to.not_ = from.not_, to.has = from.has;
    CopyFields(from.enums, to.enums);
    CopyFields(from.all_of, to.all_of);
    CopyFields(from.any_of, to.any_of);
    CopyFields(from.one_of, to.one_of);
  }
  static void CopyFields(const SchemaNode& from, SchemaNode& to) {
    to.type = from.type, to.list_type = from.list_type, to.flags = from.flags;
    to.items = from.items, to.additional = from.additional;
    to.default_value = from.default_value, to.checks = from.checks;
    CopyFields(from.format, to.format);
    CopyFields(from.properties, to.properties);
    CopyFields(from.required, to.required);
    CopyFields(from.map_keys, to.map_keys);
    CopyFields(from.rules, to.rules);
  }

  using Index = std::unordered_map<std::string, uint32_t>;

  // The index of an item that is equal to `item`, which is added if there is none.
  template <typename Item>
  static uint32_t Share(Index& index, std::vector<Item>& table, const Item& item) {
    std::string key;
    AddKey(item, key);
    auto [it, added] = index.try_emplace(std::move(key), static_cast<uint32_t>(table.size()));
    if (added) table.push_back(item);
    return it->second;
  }

  // Adds a list to a table, unless the table has it.
  template <typename Item>
  TableRange Append(std::vector<Item>& table, const std::vector<Item>& list) {
    if (list.empty()) return {};
    std::string key;
    for (const Item& item : list) AddKey(item, key);
    auto [it, added] = lists_[&table].try_emplace(std::move(key), static_cast<uint32_t>(table.size()));
    if (added) table.insert(table.end(), list.begin(), list.end());
    return {it->second, static_cast<uint32_t>(list.size())};
  }

  std::unique_ptr<SchemaNodes> out_;
  size_t count_ = 0;
  Index nodes_, checks_, values_, pattern_index_;
  std::map<const void*, Index> lists_;
  std::unordered_map<std::string, TableRange> enums_;
  std::unordered_map<std::string, TextRef> texts_;
  std::vector<TextRef> patterns_;
};

}  // namespace

Result<std::shared_ptr<const StructuralSchema>> StructuralSchema::Compile(const Props& schema) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<SchemaNodes> nodes, Compiler().Compile(schema));
  return std::shared_ptr<const StructuralSchema>(new StructuralSchema(std::move(nodes)));
}

}  // namespace keelson::k8s
