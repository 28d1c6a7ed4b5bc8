#include "controlplane/controllers/validatingadmissionpolicystatus/type_check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/expressions/compiler.h"

namespace keelson::controllers {
namespace {

using admissionregistrationv1::ExpressionWarning;
using admissionregistrationv1::Rule;
using admissionregistrationv1::ValidatingAdmissionPolicy;

constexpr int kMaxTypesToCheck = 10;

using Strings = google::protobuf::RepeatedPtrField<std::string>;

// Sorted; nothing if one of them stands for several.
std::vector<std::string> Named(const Strings& words) {
  std::vector<std::string> out(words.begin(), words.end());
  const auto is_wild = [](const std::string& word) { return word.find('*') != std::string::npos; };
  if (std::any_of(out.begin(), out.end(), is_wild)) return {};
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> Resources(const Strings& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (word.find_first_of("*/") == std::string::npos) out.push_back(word);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Adds the kinds of a rule. False: there are enough.
bool AddKinds(const Rule& rule, const KindOfResource& kind_of, std::set<CheckedKind>& out) {
  int count = 0;
  for (const std::string& group : Named(rule.api_groups())) {
    for (const std::string& version : Named(rule.api_versions())) {
      for (const std::string& resource : Resources(rule.resources())) {
        std::string kind = kind_of(group, version, resource);
        if (kind.empty()) continue;
        out.insert({group, version, std::move(kind)});
        if (++count == kMaxTypesToCheck) return false;
      }
    }
  }
  return true;
}

// A text that is checked, and where the policy has it.
struct Checked {
  std::string place;
  const std::string& text;
};

std::vector<Checked> TextsOf(const ValidatingAdmissionPolicy& policy) {
  std::vector<Checked> out;
  for (int i = 0; i < policy.spec().validations_size(); ++i) {
    const auto& validation = policy.spec().validations(i);
    const std::string place = fmt::format("spec.validations[{}].", i);
    out.push_back({place + "expression", validation.expression()});
    if (validation.message_expression().empty()) continue;
    out.push_back({place + "messageExpression", validation.message_expression()});
  }
  return out;
}

// What the checker says, without what validation puts before it.
std::string_view Issues(const k8s::CompiledExpression& compiled) {
  std::string_view text = compiled.error;
  if (text.starts_with(k8s::kCompilationFailed)) text.remove_prefix(k8s::kCompilationFailed.size());
  return text;
}

}  // namespace

std::string CheckedKind::ToString() const { return fmt::format("{}/{}, Kind={}", group, version, kind); }

std::vector<CheckedKind> KindsToCheck(const ValidatingAdmissionPolicy& policy,
                                      const KindOfResource& kind_of) {
  std::set<CheckedKind> kinds;
  for (const auto& named : policy.spec().match_constraints().resource_rules()) {
    if (!AddKinds(named.rule_with_operations().rule(), kind_of, kinds)) break;
  }
  return {kinds.begin(), kinds.end()};
}

std::vector<ExpressionWarning> CheckTypes(const ValidatingAdmissionPolicy& policy,
                                          const std::vector<TypedKind>& kinds,
                                          const cel::DeclTypePtr& params) {
  const std::vector<Checked> texts = TextsOf(policy);
  std::vector<std::string> found(texts.size());
  for (const TypedKind& one : kinds) {
    k8s::ExpressionCompiler compiler(params != nullptr, {one.type, params});
    for (const auto& variable : policy.spec().variables()) {
      compiler.AddVariable(variable.name(), variable.expression());
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto compiled = compiler.Compile(texts[i].text, k8s::ExpressionResult::kAnything);
      if (compiled.error.empty()) continue;
      found[i] +=
          fmt::format("{}{}: {}\n", found[i].empty() ? "" : "\n", one.kind.ToString(), Issues(compiled));
    }
  }
  std::vector<ExpressionWarning> out;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (found[i].empty()) continue;
    ExpressionWarning& warning = out.emplace_back();
    warning.set_field_ref(texts[i].place);
    warning.set_warning(std::move(found[i]));
  }
  return out;
}

}  // namespace keelson::controllers
