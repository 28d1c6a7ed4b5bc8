// Internal to lib/k8s: what CEL rules see of structural schemas.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lib/cel/env.h"
#include "lib/cel/types/decl_type.h"
#include "lib/k8s/schema/nodes.h"

namespace keelson::k8s {

// Makes the types of one schema. Not for concurrent use; the types may be shared.
class DeclTypes {
 public:
  explicit DeclTypes(const SchemaNodes& nodes) : nodes_(nodes) {}

  // Null for parts that expressions cannot see: without a type, or lists and maps of such. `is_object`: a Kubernetes
  // object, at the root or embedded, which has apiVersion, kind, metadata.name and metadata.generateName.
  cel::DeclTypePtr Get(NodeIndex index, bool is_object);

 private:
  cel::DeclTypePtr Make(NodeIndex index, bool is_object);
  cel::DeclTypePtr MakeString(const SchemaNode& node) const;
  cel::DeclTypePtr MakeList(const SchemaNode& node);
  cel::DeclTypePtr MakeObject(NodeIndex index, bool is_object);
  const ValueChecks* ChecksOf(const SchemaNode& node) const {
    return node.checks == kNothing ? nullptr : &nodes_.checks[node.checks];
  }

  const SchemaNodes& nodes_;
  std::map<std::pair<NodeIndex, bool>, cel::DeclTypePtr> made_;
};

// The environment of a rule about values of a type. `optional_old`: oldSelf is optional<T>. `stored`: the expression
// is in etcd already, and may use all that this version knows.
cel::EnvPtr RuleEnvironment(const cel::DeclTypePtr& self, bool optional_old, bool stored);

// The place that a JSON path such as .spec.list['a'] leads to from a node, as in field errors: spec.list[a].
// kInvalid, with upstream's reason.
Result<std::string> ResolveFieldPath(const SchemaNodes& nodes, NodeIndex from, std::string_view path);

}  // namespace keelson::k8s
