#include "lib/cel/types/decl_type.h"

#include <algorithm>

namespace keelson::cel {
namespace {

// Quotes, brackets or braces around a value that takes the rest of a request.
constexpr int64_t kLongest = kMaxRequestBytes - 2;
constexpr int64_t kLongestDuration = 32, kShortestDuration = 3;
constexpr int64_t kLongestDateTime = 32, kShortestDateTime = 21, kDateLength = 12;
constexpr int64_t kBytesPerCharacter = 4;

int64_t Bound(const std::optional<int64_t>& limit, int64_t factor, int64_t otherwise) {
  if (!limit) return otherwise;
  int64_t bound = std::max<int64_t>(*limit, 0);
  return bound > INT64_MAX / factor ? INT64_MAX : bound * factor;
}

}  // namespace

DeclType::DeclType(DeclForm form, Type type, bool nullable, int64_t max_elements, int64_t min_serialized_size)
    : form_(form),
      nullable_(nullable),
      node_(*type),
      name_(type->name),
      max_elements_(max_elements),
      min_serialized_size_(min_serialized_size) {}

std::shared_ptr<DeclType> DeclType::Make(DeclForm form, Type type, bool nullable, int64_t max_elements,
                                         int64_t min_size) {
  return std::shared_ptr<DeclType>(new DeclType(form, type, nullable, max_elements, min_size));
}

DeclTypePtr DeclType::Dyn() {
  static const DeclTypePtr type = Make(DeclForm::kDyn, &types::kDyn, true, 0, 1);
  return type;
}

DeclTypePtr DeclType::Dyn(int64_t max_elements) {
  return Make(DeclForm::kDyn, &types::kDyn, true, max_elements, 1);
}

DeclTypePtr DeclType::Bool(bool nullable) { return Make(DeclForm::kBool, &types::kBool, nullable, 0, 4); }
DeclTypePtr DeclType::Int(bool nullable) { return Make(DeclForm::kInt, &types::kInt, nullable, 0, 1); }
DeclTypePtr DeclType::Double(bool nullable) {
  return Make(DeclForm::kDouble, &types::kDouble, nullable, 0, 1);
}

DeclTypePtr DeclType::String(StringLimits limits, bool nullable) {
  int64_t longest = limits.max_length ? Bound(limits.max_length, kBytesPerCharacter, kLongest)
                                      : limits.longest_enum.value_or(kLongest);
  return Make(DeclForm::kString, &types::kString, nullable, longest, 2);
}

DeclTypePtr DeclType::Bytes(std::optional<int64_t> max_length, bool nullable) {
  return Make(DeclForm::kBytes, &types::kBytes, nullable, Bound(max_length, 1, kLongest), 2);
}

DeclTypePtr DeclType::Duration(bool nullable) {
  return Make(DeclForm::kDuration, &types::kDuration, nullable, kLongestDuration, kShortestDuration);
}

DeclTypePtr DeclType::Date(bool nullable) {
  return Make(DeclForm::kDate, &types::kTimestamp, nullable, kDateLength, kDateLength);
}

DeclTypePtr DeclType::DateTime(bool nullable) {
  return Make(DeclForm::kDateTime, &types::kTimestamp, nullable, kLongestDateTime, kShortestDateTime);
}

DeclTypePtr DeclType::IntOrString(std::optional<int64_t> max_length, bool nullable) {
  return Make(DeclForm::kIntOrString, &types::kDyn, nullable, Bound(max_length, kBytesPerCharacter, kLongest),
              1);
}

DeclTypePtr DeclType::Preserved(bool nullable) {
  return Make(DeclForm::kPreserved, &types::kDyn, nullable, 0, 1);
}

DeclTypePtr DeclType::List(DeclTypePtr element, std::optional<int64_t> max_items, ListSemantics semantics,
                           std::vector<std::string> map_keys, bool nullable) {
  TypeNode node{TypeKind::kList, 1, -1, "list", {element->type(), nullptr}};
  auto out = Make(DeclForm::kList, &node, nullable,
                  Bound(max_items, 1, kLongest / (element->min_serialized_size() + 1)), 2);
  out->element_ = std::move(element);
  out->semantics_ = semantics;
  out->map_keys_ = std::move(map_keys);
  return out;
}

DeclTypePtr DeclType::Map(DeclTypePtr value, std::optional<int64_t> max_properties, bool nullable,
                          int64_t max_key_length) {
  TypeNode node{TypeKind::kMap, 2, -1, "map", {&types::kString, value->type()}};
  auto out = Make(DeclForm::kMap, &node, nullable,
                  Bound(max_properties, 1, kLongest / (value->min_serialized_size() + 6)), 2);
  out->max_key_length_ = max_key_length;
  out->element_ = std::move(value);
  return out;
}

DeclTypePtr DeclType::Object(std::string name, std::vector<DeclField> fields, bool nullable) {
  TypeNode node{TypeKind::kObject, 0, -1, name};
  int64_t smallest = 2;
  for (const DeclField& field : fields) {
    if (field.required && !field.has_default) {
      smallest += static_cast<int64_t>(field.json_name.size()) + field.type->min_serialized_size() + 4;
    }
  }
  auto out = Make(DeclForm::kObject, &node, nullable, 0, smallest);
  out->name_ = std::move(name);
  out->node_.name = out->name_;
  out->node_.decl = out.get();
  out->fields_ = std::move(fields);
  for (const DeclField& field : out->fields_) {
    if (!field.name.empty()) out->by_name_.emplace(field.name, &field);
    out->by_json_name_.emplace(field.json_name, &field);
  }
  return out;
}

DeclTypePtr DeclType::Native(Type type) {
  // Scalars have a size, other than those of schemas: comparing them costs something.
  return Make(DeclForm::kNative, type, false, type->kind == TypeKind::kBool ? 1 : 0, 0);
}

const DeclField* DeclType::FindField(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const DeclField* DeclType::FindJsonField(std::string_view name) const {
  auto found = by_json_name_.find(name);
  return found == by_json_name_.end() ? nullptr : found->second;
}

}  // namespace keelson::cel
