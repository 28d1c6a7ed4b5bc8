// Internal to lib/k8s/validation/extension: expressions of webhooks and admission policies.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/k8s/expressions/compiler.h"
#include "lib/k8s/validation/extension/admission_rules.h"

namespace keelson::k8s {

// Compiles the expressions of one webhook or policy, and reports those that do not compile.
class ExpressionRules {
 public:
  // `known`: expressions of the object before the update, which may go on using what only newer versions know.
  ExpressionRules(bool params, const std::set<std::string_view>& known) : compiler_(params), known_(known) {}

  // `shown`: as the error quotes the expression.
  void Check(std::string_view text, std::string_view shown, ExpressionResult result,
             ExpressionCompiler::Options options, const Path& path, FieldErrors& errors);
  void Check(std::string_view text, ExpressionResult result, const Path& path, FieldErrors& errors) {
    Check(text, text, result, {}, path, errors);
  }
  void CheckVariable(const admissionregistrationv1::Variable& variable, const Path& path,
                     FieldErrors& errors);

 private:
  bool IsKnown(std::string_view text) const { return known_.count(text) > 0; }

  ExpressionCompiler compiler_;
  const std::set<std::string_view>& known_;
};

}  // namespace keelson::k8s
