// Internal to lib/k8s: the compiled form of a structural schema.
//
// All parts of a schema are nodes in one table. A node stands for every place of the schema that is equal to it, so
// a schema that repeats a pod template ten times holds it once. Nodes refer to each other by index, and to text by
// position in one string.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "lib/api/apply/typed.h"

namespace re2 {
class RE2;
}

namespace keelson::k8s {

struct CompiledRules;  // rule_programs.h

using NodeIndex = uint32_t;
inline constexpr NodeIndex kNoNode = UINT32_MAX;
inline constexpr uint32_t kNothing = UINT32_MAX;

enum class SchemaType : uint8_t { kAny, kObject, kArray, kString, kInteger, kNumber, kBoolean, kIntOrString };
enum class SchemaListType : uint8_t { kUnset, kAtomic, kSet, kMap };

// A part of SchemaNodes::text.
struct TextRef {
  uint32_t begin = 0, size = 0;
};

// A part of one of the other tables.
struct TableRange {
  uint32_t begin = 0, size = 0;
};

struct SchemaProperty {
  TextRef name;
  NodeIndex node;
};

// What a node says about values beyond their types.
struct ValueChecks {
  enum Has : uint16_t {
    kMaximum = 1 << 0,
    kMinimum = 1 << 1,
    kExclusiveMaximum = 1 << 2,
    kExclusiveMinimum = 1 << 3,
    kMultipleOf = 1 << 4,
    kMaxLength = 1 << 5,
    kMinLength = 1 << 6,
    kMaxItems = 1 << 7,
    kMinItems = 1 << 8,
    kMaxProperties = 1 << 9,
    kMinProperties = 1 << 10,
    kUniqueItems = 1 << 11,
  };
  double maximum = 0, minimum = 0, multiple_of = 0;
  int64_t max_length = 0, min_length = 0, max_items = 0, min_items = 0, max_properties = 0,
          min_properties = 0;
  uint32_t pattern = kNothing;  // of SchemaNodes::patterns
  NodeIndex not_ = kNoNode;
  TableRange enums;                   // of values
  TableRange all_of, any_of, one_of;  // of branches
  uint32_t has = 0;
};

// A rule of x-kubernetes-validations.
struct SchemaRule {
  TextRef rule, message, message_expression, reason, field_path;
  bool optional_old_self = false, has_optional_old_self = false;
};

struct SchemaNode {
  enum Flag : uint16_t {
    kNullable = 1 << 0,
    kPreserve = 1 << 1,    // x-kubernetes-preserve-unknown-fields
    kEmbedded = 1 << 2,    // x-kubernetes-embedded-resource
    kMapAtomic = 1 << 3,   // x-kubernetes-map-type: atomic
    kAdditional = 1 << 4,  // additionalProperties is there; true unless kAdditionalForbidden or `additional`
    kAdditionalForbidden = 1 << 5,
    kDefaultsBelow = 1 << 6,  // a part below has a default
    kEmbeddedBelow = 1 << 7,  // this or a part below is an embedded resource
    kListsBelow = 1 << 8,     // this or a part below is a set or a map list
    kRulesBelow = 1 << 9,     // this or a part below has rules
  };

  SchemaType type = SchemaType::kAny;
  SchemaListType list_type = SchemaListType::kUnset;
  uint16_t flags = 0;
  TextRef format;  // empty where it is not checked
  NodeIndex items = kNoNode;
  NodeIndex additional = kNoNode;
  TableRange properties;              // sorted by name
  TableRange required;                // of names
  TableRange map_keys;                // of names
  uint32_t default_value = kNothing;  // of values
  uint32_t checks = kNothing;
  TableRange rules;

  bool Is(Flag flag) const { return (flags & flag) != 0; }
};

// A regular expression that is compiled on first use.
class LazyPattern {
 public:
  explicit LazyPattern(std::string_view text) : text_(text) {}
  LazyPattern(const LazyPattern&) = delete;
  ~LazyPattern();
  // Whether any part of `value` matches.
  bool Matches(std::string_view value) const;
  std::string_view text() const { return text_; }

 private:
  const std::string_view text_;
  mutable std::atomic<const re2::RE2*> program_{nullptr};
};

struct SchemaNodes {
  NodeIndex root = 0;
  std::vector<SchemaNode> nodes;
  std::vector<SchemaProperty> properties;
  std::vector<TextRef> names;
  std::vector<ValueChecks> checks;
  std::vector<NodeIndex> branches;
  std::vector<boost::json::value> values;
  std::vector<SchemaRule> rules;
  std::deque<LazyPattern> patterns;
  std::string text;

  // Made on first use (shape.cc).
  mutable std::once_flag shape_once;
  mutable std::deque<api::Shape> shapes;
  // Made on first use (rules.cc).
  mutable std::once_flag rules_once;
  mutable std::shared_ptr<const CompiledRules> rules_made;

  std::string_view Text(TextRef ref) const { return std::string_view(text).substr(ref.begin, ref.size); }
  std::string_view Name(TableRange range, uint32_t i) const { return Text(names[range.begin + i]); }
  // The node of a named property, or kNoNode.
  NodeIndex Property(const SchemaNode& node, std::string_view name) const;
  // The node that holds for a member of objects: of the property, otherwise of additional ones, or kNoNode.
  NodeIndex Member(const SchemaNode& node, std::string_view name) const {
    const NodeIndex found = Property(node, name);
    return found == kNoNode ? node.additional : found;
  }
  const SchemaNode& root_node() const { return nodes[root]; }
};

// Removes what a node does not know from a value, for defaults (prune.cc).
void PruneValue(const SchemaNodes& nodes, const SchemaNode& node, boost::json::value& value);

// apiVersion, kind and metadata: every object has them.
inline bool IsMetaField(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

inline std::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

}  // namespace keelson::k8s
