#include "lib/k8s/validation/extension/admission_expressions.h"

#include <algorithm>

#include "lib/base/text.h"

namespace keelson::k8s {

namespace {

constexpr int kMaxMatchConditions = 64;

bool IsIdentifier(std::string_view name) {
  const auto word = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (name.empty() || isdigit(static_cast<unsigned char>(name.front()))) return false;
  constexpr std::string_view kReserved[] = {"true",   "false",    "null", "in",      "as",        "break",
                                            "const",  "continue", "else", "for",     "function",  "if",
                                            "import", "let",      "loop", "package", "namespace", "return",
                                            "var",    "void",     "while"};
  return std::all_of(name.begin(), name.end(), word) &&
         std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved);
}

}  // namespace

void ExpressionRules::Check(std::string_view text, std::string_view shown, ExpressionResult result,
                            ExpressionCompiler::Options options, const Path& path, FieldErrors& errors) {
  options.stored = IsKnown(text);
  const CompiledExpression compiled = compiler_.Compile(text, result, options);
  if (!compiled.error.empty()) errors.push_back(Invalid(path, shown, compiled.error));
}

void ExpressionRules::CheckVariable(const admissionregistrationv1::Variable& variable, const Path& path,
                                    FieldErrors& errors) {
  if (Trim(variable.name()).empty()) {
    errors.push_back(Required(path.Child("name"), "name is not specified"));
  } else if (!IsIdentifier(variable.name())) {
    errors.push_back(Invalid(path.Child("name"), variable.name(), "name is not a valid CEL identifier"));
  }
  const std::string& text = variable.expression();
  if (Trim(text).empty()) {
    errors.push_back(Required(path.Child("expression"), "expression is not specified"));
    return;
  }
  const CompiledExpression& compiled = compiler_.AddVariable(variable.name(), text, IsKnown(text));
  if (!compiled.error.empty()) errors.push_back(Invalid(path.Child("expression"), text, compiled.error));
}

void CheckMatchConditions(const MatchConditions& conditions, bool params,
                          const std::set<std::string_view>& known, const Path& path, FieldErrors& errors) {
  if (conditions.size() > kMaxMatchConditions) {
    errors.push_back(TooMany(path, conditions.size(), kMaxMatchConditions));
  }
  ExpressionRules rules(params, known);
  std::set<std::string_view> names;
  for (int i = 0; i < conditions.size(); ++i) {
    const Path item = path.Index(i);
    const std::string& name = conditions[i].name();
    if (const std::string_view text = Trim(conditions[i].expression()); text.empty()) {
      errors.push_back(Required(item.Child("expression")));
    } else {
      rules.Check(text, ExpressionResult::kBool, item.Child("expression"), errors);
    }
    CheckName(name, CheckQualifiedName, item.Child("name"), errors);
    if (!name.empty() && !names.insert(name).second) errors.push_back(Duplicate(item.Child("name"), name));
  }
}

bool SameConditions(const MatchConditions& a, const MatchConditions& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.name() == other.name() && one.expression() == other.expression();
  });
}

void AddExpressions(const MatchConditions& conditions, std::set<std::string_view>& known) {
  for (const auto& condition : conditions) known.insert(condition.expression());
}

}  // namespace keelson::k8s
