// Internal to lib/k8s: compiled rules of x-kubernetes-validations.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/cel/program.h"
#include "lib/k8s/schema/decl_types.h"

namespace keelson::k8s {

struct RuleText {
  std::string_view rule, message_expression;
  bool optional_old_self = false;
  bool stored_rule = true, stored_message = true;  // as RuleEnvironment()'s `stored`
};

struct RuleProgram {
  std::shared_ptr<const cel::Program> rule, message;  // null: none, or an error
  cel::EnvPtr env, message_env;
  std::string error, message_error;  // as upstream's validation prints them
  bool uses_old_self = false;
};

// `self`: the type of the values that the rule is about.
RuleProgram CompileRule(const cel::DeclTypePtr& self, const RuleText& text);

// The rules of one node.
struct NodeRules {
  cel::DeclTypePtr self;
  std::vector<RuleProgram> programs;  // one a rule
  std::vector<std::string> places;    // of fieldPath; empty: none
};

// The rules of a schema, by node and by whether the node is a Kubernetes object there.
struct CompiledRules {
  std::map<std::pair<NodeIndex, bool>, NodeRules> nodes;
};

// Compiles all rules of a schema that is stored.
CompiledRules CompileRules(const SchemaNodes& nodes);

}  // namespace keelson::k8s
