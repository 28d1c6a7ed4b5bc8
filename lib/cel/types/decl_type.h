// Declared types: what is known of an object's shape before any expression sees it. They come from OpenAPI schemas of
// custom resources and from the descriptors of built-in types. The checker takes fields' types from them, the cost
// estimator their sizes, and the views of lib/cel/values the reading of JSON (k8s.io/apiserver/pkg/cel, DeclType).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/cel/types/type.h"

namespace keelson::cel {

class DeclType;
using DeclTypePtr = std::shared_ptr<const DeclType>;

// The request size that unbounded values are assumed to fit in.
inline constexpr int64_t kMaxRequestBytes = 3 * 1024 * 1024;

// How JSON becomes a value of the declared type.
enum class DeclForm : uint8_t {
  kDyn,  // as it is: no schema
  kBool,
  kInt,
  kDouble,  // also from whole numbers
  kString,
  kBytes,        // format byte: base64
  kDuration,     // format duration
  kDate,         // format date: a timestamp
  kDateTime,     // format date-time: a timestamp
  kIntOrString,  // dyn for the checker; int or string at run time
  kPreserved,  // x-kubernetes-preserve-unknown-fields without type: not for expressions, compares by its JSON
  kList,
  kMap,     // additionalProperties
  kObject,  // properties
  kNative,  // a value of CEL itself (kubernetes.Quantity, ...): no JSON
};

// x-kubernetes-list-type. Sets and maps compare without order, and `+` merges them.
enum class ListSemantics : uint8_t { kAtomic, kSet, kMap };

struct DeclField {
  std::string json_name;
  std::string name;  // as expressions write it: escaped (lib/cel/syntax/escaping.h)
  DeclTypePtr type;
  bool required = false;
  bool has_default = false;
};

// Immutable; share it between threads. Sizes follow upstream's estimates: `max_elements` is the most characters, bytes,
// items or entries; `min_serialized_size` the fewest bytes of JSON.
class DeclType {
 public:
  // Sizes of strings. `max_length` is the schema's maxLength in characters; `longest_enum` the longest value of an enum.
  struct StringLimits {
    std::optional<int64_t> max_length;
    std::optional<int64_t> longest_enum;
  };

  static DeclTypePtr Dyn();
  static DeclTypePtr Dyn(int64_t max_elements);  // unknown, and no larger than that
  static DeclTypePtr Bool(bool nullable = false);
  static DeclTypePtr Int(bool nullable = false);
  static DeclTypePtr Double(bool nullable = false);
  static DeclTypePtr String(StringLimits limits = {}, bool nullable = false);
  static DeclTypePtr Bytes(std::optional<int64_t> max_length = {}, bool nullable = false);
  static DeclTypePtr Duration(bool nullable = false);
  static DeclTypePtr Date(bool nullable = false);
  static DeclTypePtr DateTime(bool nullable = false);
  static DeclTypePtr IntOrString(std::optional<int64_t> max_length = {}, bool nullable = false);
  static DeclTypePtr Preserved(bool nullable = false);
  static DeclTypePtr List(DeclTypePtr element, std::optional<int64_t> max_items = {},
                          ListSemantics semantics = ListSemantics::kAtomic,
                          std::vector<std::string> map_keys = {}, bool nullable = false);
  // `max_key_length`: in upstream's estimates keys have no length unless a type says so.
  static DeclTypePtr Map(DeclTypePtr value, std::optional<int64_t> max_properties = {}, bool nullable = false,
                         int64_t max_key_length = 0);
  // `name` appears in messages and is what tells object types apart: give each object of one environment its own, such
  // as the path of its field ("selfType.spec"). A field whose `name` is empty stays hidden from expressions but takes
  // part in comparisons, as do JSON fields that no DeclField names.
  static DeclTypePtr Object(std::string name, std::vector<DeclField> fields, bool nullable = false);
  // A type of CEL's own, for variables: kubernetes.authorization.Authorizer. `type` has to live as long as the process.
  static DeclTypePtr Native(Type type);

  DeclForm form() const { return form_; }
  bool nullable() const { return nullable_; }
  Type type() const { return &node_; }
  const std::string& name() const { return name_; }
  int64_t max_elements() const { return max_elements_; }
  int64_t min_serialized_size() const { return min_serialized_size_; }

  const DeclTypePtr& element() const { return element_; }     // of kList, or the values of kMap
  int64_t max_key_length() const { return max_key_length_; }  // of kMap
  ListSemantics semantics() const { return semantics_; }
  const std::vector<std::string>& map_keys() const { return map_keys_; }  // JSON names

  const std::vector<DeclField>& fields() const { return fields_; }
  const DeclField* FindField(std::string_view name) const;  // as expressions write it; null if there is none
  const DeclField* FindJsonField(std::string_view name) const;  // by its JSON name; null if there is none

  DeclType(const DeclType&) = delete;
  DeclType& operator=(const DeclType&) = delete;

 private:
  DeclType(DeclForm form, Type type, bool nullable, int64_t max_elements, int64_t min_serialized_size);
  static std::shared_ptr<DeclType> Make(DeclForm form, Type type, bool nullable, int64_t max_elements,
                                        int64_t min_size);

  DeclForm form_;
  bool nullable_;
  ListSemantics semantics_ = ListSemantics::kAtomic;
  TypeNode node_;
  std::string name_;
  int64_t max_elements_, min_serialized_size_, max_key_length_ = 0;
  DeclTypePtr element_;
  std::vector<std::string> map_keys_;
  std::vector<DeclField> fields_;
  std::unordered_map<std::string_view, const DeclField*> by_name_, by_json_name_;
};

}  // namespace keelson::cel
