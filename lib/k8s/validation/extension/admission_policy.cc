// Admission policies and their bindings.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/scheme.h"
#include "lib/base/text.h"
#include "lib/k8s/internal_form.h"
#include "lib/k8s/validation/extension/admission_expressions.h"
#include "lib/k8s/validation/extension/admission_rules.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

using namespace admissionregistrationv1;

constexpr int kMaxAuditAnnotations = 20;
constexpr size_t kAuditExpressionBytes = 5 * 1024;

void CheckParamKind(const ParamKind& kind, const Path& path, FieldErrors& errors) {
  const Path place = path.Child("apiVersion");
  const std::string& api_version = kind.api_version();
  if (api_version.empty()) {
    errors.push_back(Required(place));
  } else if (std::count(api_version.begin(), api_version.end(), '/') > 1) {
    errors.push_back(Invalid(place, api_version, "unexpected GroupVersion string: " + api_version));
  } else {
    const auto [group, version] = api::SplitApiVersion(api_version);
    if (const Problems problems = CheckDns1123Subdomain(group); !group.empty() && !problems.empty()) {
      errors.push_back(Invalid(place, group, Join(problems, ",")));
    }
    if (version.empty()) {
      errors.push_back(Invalid(place, api_version, "version must be specified"));
    } else if (const Problems problems = CheckDns1035Label(version); !problems.empty()) {
      errors.push_back(Invalid(place, version, Join(problems, ",")));
    }
  }
  if (kind.kind().empty()) {
    errors.push_back(Required(path.Child("kind")));
  } else if (const Problems problems = CheckDns1035Label(Lower(kind.kind())); !problems.empty()) {
    errors.push_back(Invalid(path.Child("kind"), kind.kind(),
                             "may have mixed case, but should otherwise match: " + Join(problems, ",")));
  }
}

using NamedRules = google::protobuf::RepeatedPtrField<NamedRuleWithOperations>;

void CheckNamedRules(const NamedRules& rules, const Path& path, FieldErrors& errors) {
  for (int i = 0; i < rules.size(); ++i) {
    const Path item = path.Index(i);
    const Path names = item.Child("resourceNames");
    std::set<std::string_view> seen;
    for (int j = 0; j < rules[i].resource_names_size(); ++j) {
      const std::string& name = rules[i].resource_names(j);
      AddProblems(CheckPathSegmentName(name), name, names.Index(j), errors);
      if (!seen.insert(name).second) errors.push_back(Duplicate(names.Index(j), name));
    }
    CheckRuleWithOperations(rules[i].rule_with_operations(), item, errors);
  }
}

void CheckMatchResources(const MatchResources& match, const Path& path, FieldErrors& errors) {
  if (!match.has_match_policy()) {
    errors.push_back(Required(path.Child("matchPolicy")));
  } else {
    CheckOneOf(match.match_policy(), {"Equivalent", "Exact"}, path.Child("matchPolicy"), errors);
  }
  if (!match.has_namespace_selector()) {
    errors.push_back(Required(path.Child("namespaceSelector")));
  } else {
    CheckLabelSelector(match.namespace_selector(), path.Child("namespaceSelector"), errors);
  }
  if (!match.has_object_selector()) {
    errors.push_back(Required(path.Child("objectSelector")));
  } else {
    CheckLabelSelector(match.object_selector(), path.Child("objectSelector"), errors);
  }
  CheckNamedRules(match.resource_rules(), path.Child("resourceRules"), errors);
  CheckNamedRules(match.exclude_resource_rules(), path.Child("excludeResourceRules"), errors);
}

using KnownExpressions = std::set<std::string_view>;

// The common start of both kinds of policy.
template <typename Spec>
void CheckHead(const Spec& spec, const Spec* old, const KnownExpressions& known, const Path& path,
               FieldErrors& errors) {
  if (!spec.has_failure_policy()) {
    errors.push_back(Required(path.Child("failurePolicy")));
  } else {
    CheckOneOf(spec.failure_policy(), {"Fail", "Ignore"}, path.Child("failurePolicy"), errors);
  }
  if (spec.has_param_kind()) CheckParamKind(spec.param_kind(), path.Child("paramKind"), errors);
  const Path constraints = path.Child("matchConstraints");
  if (!spec.has_match_constraints()) {
    errors.push_back(Required(constraints));
  } else {
    CheckMatchResources(spec.match_constraints(), constraints, errors);
    if (spec.match_constraints().resource_rules().empty()) {
      errors.push_back(Required(constraints.Child("resourceRules")));
    }
  }
  // Conditions that do not change are not looked at again.
  const bool same = old && spec.has_param_kind() == old->has_param_kind() &&
                    SameMessage(spec.param_kind(), old->param_kind()) &&
                    SameConditions(spec.match_conditions(), old->match_conditions());
  if (!same) {
    CheckMatchConditions(spec.match_conditions(), spec.has_param_kind(), known, path.Child("matchConditions"),
                         errors);
  }
}

using Variables = google::protobuf::RepeatedPtrField<Variable>;

void CheckVariables(const Variables& variables, ExpressionRules& rules, const Path& path,
                    FieldErrors& errors) {
  for (int i = 0; i < variables.size(); ++i) rules.CheckVariable(variables[i], path.Index(i), errors);
}

template <typename Spec>
void AddHeadExpressions(const Spec& spec, KnownExpressions& known) {
  AddExpressions(spec.match_conditions(), known);
  for (const Variable& variable : spec.variables()) known.insert(variable.expression());
}

void CheckMessageExpression(std::string_view text, ExpressionRules& rules, const Path& path,
                            FieldErrors& errors) {
  if (Trim(text).empty()) {
    errors.push_back(Invalid(path, text, "must be non-empty if specified"));
    return;
  }
  ExpressionCompiler::Options options;
  options.authorizer = false;
  rules.Check(text, text, ExpressionResult::kString, options, path, errors);
}

void CheckValidation(const Validation& validation, ExpressionRules& rules, const Path& path,
                     FieldErrors& errors) {
  if (Trim(validation.expression()).empty()) {
    errors.push_back(Required(path.Child("expression"), "expression is not specified"));
  } else {
    rules.Check(validation.expression(), ExpressionResult::kBool, path.Child("expression"), errors);
  }
  const std::string_view message = Trim(validation.message());
  if (!validation.message_expression().empty()) {
    CheckMessageExpression(validation.message_expression(), rules, path.Child("messageExpression"), errors);
  }
  if (!validation.message().empty() && message.empty()) {
    errors.push_back(
        Invalid(path.Child("message"), validation.message(), "message must be non-empty if specified"));
  } else if (message.find_first_of("\r\n") != std::string_view::npos) {
    errors.push_back(
        Invalid(path.Child("message"), validation.message(), "message must not contain line breaks"));
  }
  if (validation.has_reason()) {
    CheckOneOf(validation.reason(), {"Forbidden", "Invalid", "RequestEntityTooLarge"}, path.Child("reason"),
               errors);
  }
}

void CheckAuditAnnotations(const ValidatingAdmissionPolicy& object, ExpressionRules& rules, const Path& path,
                           FieldErrors& errors) {
  const auto& annotations = object.spec().audit_annotations();
  if (annotations.size() > kMaxAuditAnnotations) {
    std::string printed;
    for (const AuditAnnotation& annotation : annotations) {
      printed += (printed.empty() ? "[" : ",") + PrintInternal(annotation);
    }
    errors.push_back(
        InvalidRaw(path, printed + "]",
                   fmt::format("must not have more than {} auditAnnotations", kMaxAuditAnnotations)));
  }
  std::set<std::string_view> keys;
  for (int i = 0; i < annotations.size(); ++i) {
    const Path item = path.Index(i);
    const std::string& key = annotations[i].key();
    const std::string name = object.metadata().name() + "/" + key;
    AddProblems(CheckQualifiedName(name), name, item.Child("key"), errors);
    const std::string_view expression = Trim(annotations[i].value_expression());
    if (expression.empty()) {
      errors.push_back(Required(item.Child("valueExpression"), "valueExpression is not specified"));
    } else if (expression.size() > kAuditExpressionBytes) {
      errors.push_back(Required(item.Child("valueExpression"),
                                fmt::format("must not exceed {} bytes in length", kAuditExpressionBytes)));
    } else {
      rules.Check(expression, annotations[i].value_expression(), ExpressionResult::kStringOrNull, {},
                  item.Child("valueExpression"), errors);
    }
    if (!keys.insert(key).second) errors.push_back(Duplicate(item.Child("key"), key));
  }
}

KnownExpressions ExpressionsOf(const ValidatingAdmissionPolicySpec& spec) {
  KnownExpressions known;
  AddHeadExpressions(spec, known);
  for (const Validation& validation : spec.validations()) {
    known.insert({validation.expression(), validation.message_expression()});
  }
  for (const AuditAnnotation& annotation : spec.audit_annotations()) {
    known.insert(annotation.value_expression());
  }
  return known;
}

// `old` null: the object is new.
void CheckWhole(const ValidatingAdmissionPolicy& object, const ValidatingAdmissionPolicy* old,
                FieldErrors& errors) {
  const Path path("spec");
  const ValidatingAdmissionPolicySpec& spec = object.spec();
  const KnownExpressions known = old ? ExpressionsOf(old->spec()) : KnownExpressions();
  CheckHead(spec, old ? &old->spec() : nullptr, known, path, errors);
  ExpressionRules rules(spec.has_param_kind(), known);
  CheckVariables(spec.variables(), rules, path.Child("variables"), errors);
  const Path validations = path.Child("validations"), annotations = path.Child("auditAnnotations");
  if (spec.validations().empty() && spec.audit_annotations().empty()) {
    constexpr char kEither[] = "validations or auditAnnotations must contain at least one item";
    errors.push_back(Required(validations, kEither));
    errors.push_back(Required(annotations, kEither));
    return;
  }
  for (int i = 0; i < spec.validations_size(); ++i) {
    CheckValidation(spec.validations(i), rules, validations.Index(i), errors);
  }
  CheckAuditAnnotations(object, rules, annotations, errors);
}

void CheckValidatingPolicyStatus(const ValidatingAdmissionPolicy& object, const ValidatingAdmissionPolicy&,
                                 FieldErrors& errors) {
  const Path status("status");
  const Path checking = status.Child("typeChecking");
  const Path warnings = checking.Child("expressionWarnings");
  for (int i = 0; i < object.status().type_checking().expression_warnings_size(); ++i) {
    const ExpressionWarning& warning = object.status().type_checking().expression_warnings(i);
    const Path item = warnings.Index(i);
    if (warning.warning().empty()) errors.push_back(Required(item.Child("warning")));
    if (Trim(warning.field_ref()).empty()) errors.push_back(Required(item.Child("fieldRef")));
  }
  CheckConditions(object.status().conditions(), status.Child("conditions"), errors);
}

void CheckPatch(std::string_view text, ExpressionResult result, ExpressionRules& rules, const Path& path,
                FieldErrors& errors) {
  text = Trim(text);
  if (text.empty()) {
    errors.push_back(Required(path, "expression is not specified"));
    return;
  }
  ExpressionCompiler::Options options;
  options.patch_types = true;
  rules.Check(text, text, result, options, path, errors);
}

void CheckMutation(const Mutation& mutation, ExpressionRules& rules, const Path& path, FieldErrors& errors) {
  const std::string& type = mutation.patch_type();
  const Path configuration = path.Child("applyConfiguration"), patch = path.Child("jsonPatch");
  if (type == "ApplyConfiguration") {
    if (mutation.has_json_patch()) {
      errors.push_back(Forbidden(patch, "must not be specified when patchType is ApplyConfiguration"));
    }
    if (!mutation.has_apply_configuration()) {
      errors.push_back(Required(configuration, "must be specified when patchType is ApplyConfiguration"));
    } else {
      CheckPatch(mutation.apply_configuration().expression(), ExpressionResult::kObject, rules,
                 configuration.Child("expression"), errors);
    }
  } else if (type == "JSONPatch") {
    if (mutation.has_apply_configuration()) {
      errors.push_back(Forbidden(configuration, "must not be specified when patchType is JSONPatch"));
    }
    if (!mutation.has_json_patch()) {
      errors.push_back(Required(patch, "must be specified when patchType is JSONPatch"));
    } else {
      CheckPatch(mutation.json_patch().expression(), ExpressionResult::kPatch, rules,
                 patch.Child("expression"), errors);
    }
  } else {
    CheckEnum(type, {"ApplyConfiguration", "JSONPatch"}, path.Child("patchType"), errors);
  }
}

// A deleted object cannot be mutated.
void CheckMutatingOperations(const MatchResources& match, const Path& path, FieldErrors& errors) {
  const Path rules = path.Child("resourceRules");
  for (const NamedRuleWithOperations& rule : match.resource_rules()) {
    for (const std::string& operation : rule.rule_with_operations().operations()) {
      CheckOneOf(operation, {"*", "CONNECT", "CREATE", "UPDATE"}, rules.Child("operations"), errors);
    }
  }
}

KnownExpressions ExpressionsOf(const MutatingAdmissionPolicySpec& spec) {
  KnownExpressions known;
  AddHeadExpressions(spec, known);
  for (const Mutation& mutation : spec.mutations()) {
    known.insert(
        {Trim(mutation.apply_configuration().expression()), Trim(mutation.json_patch().expression())});
  }
  return known;
}

void CheckWhole(const MutatingAdmissionPolicy& object, const MutatingAdmissionPolicy* old,
                FieldErrors& errors) {
  const Path path("spec");
  const MutatingAdmissionPolicySpec& spec = object.spec();
  const KnownExpressions known = old ? ExpressionsOf(old->spec()) : KnownExpressions();
  CheckHead(spec, old ? &old->spec() : nullptr, known, path, errors);
  ExpressionRules rules(spec.has_param_kind(), known);
  CheckVariables(spec.variables(), rules, path.Child("variables"), errors);
  CheckMutatingOperations(spec.match_constraints(), path.Child("matchConstraints"), errors);
  const Path mutations = path.Child("mutations");
  if (spec.mutations().empty()) {
    errors.push_back(Required(mutations, "mutations must contain at least one item"));
  }
  for (int i = 0; i < spec.mutations_size(); ++i) {
    CheckMutation(spec.mutations(i), rules, mutations.Index(i), errors);
  }
  CheckEnum(spec.reinvocation_policy(), {"IfNeeded", "Never"}, path.Child("reinvocationPolicy"), errors);
}

void CheckParamRef(const ParamRef& reference, const Path& path, FieldErrors& errors) {
  constexpr char kExclusive[] = "name and selector are mutually exclusive";
  if (!reference.name().empty()) {
    AddProblems(CheckPathSegmentName(reference.name()), reference.name(), path.Child("name"), errors);
    if (reference.has_selector()) errors.push_back(Forbidden(path.Child("name"), kExclusive));
  }
  if (reference.has_selector()) {
    CheckLabelSelector(reference.selector(), path.Child("selector"), errors);
    if (!reference.name().empty()) errors.push_back(Forbidden(path.Child("selector"), kExclusive));
  }
  if (reference.name().empty() && !reference.has_selector()) {
    errors.push_back(Required(path, "one of name or selector must be specified"));
  }
  CheckEnum(reference.parameter_not_found_action(), {"Allow", "Deny"}, path.Child("parameterNotFoundAction"),
            errors);
}

template <typename Spec>
void CheckBindingHead(const Spec& spec, const Path& path, FieldErrors& errors) {
  CheckName(spec.policy_name(), CheckDns1123Subdomain, path.Child("policyName"), errors);
  if (spec.has_param_ref()) CheckParamRef(spec.param_ref(), path.Child("paramRef"), errors);
  if (spec.has_match_resources()) {
    CheckMatchResources(spec.match_resources(), path.Child("matchResources"), errors);
  }
}

void CheckValidatingBinding(const ValidatingAdmissionPolicyBinding& object, FieldErrors& errors) {
  const Path path("spec");
  CheckBindingHead(object.spec(), path, errors);
  const Path list = path.Child("validationActions");
  const Strings& actions = object.spec().validation_actions();
  std::set<std::string_view> seen;
  for (int i = 0; i < actions.size(); ++i) {
    CheckOneOf(actions[i], {"Audit", "Deny", "Warn"}, list.Index(i), errors);
    if (!seen.insert(actions[i]).second) errors.push_back(Duplicate(list.Index(i), actions[i]));
  }
  if (seen.count("Deny") && seen.count("Warn")) {
    errors.push_back(InvalidRaw(list, PrintStrings(actions),
                                "must not contain both Deny and Warn (repeating the same validation failure "
                                "information in the API response and headers serves no purpose)"));
  }
  if (actions.empty()) errors.push_back(Required(list, "at least one validation action is required"));
}

void CheckMutatingBinding(const MutatingAdmissionPolicyBinding& object, FieldErrors& errors) {
  const Path spec("spec");
  CheckBindingHead(object.spec(), spec, errors);
  CheckMutatingOperations(object.spec().match_resources(), spec.Child("matchResources"), errors);
}

template <typename Policy>
void CheckPolicy(const Policy& object, FieldErrors& errors) {
  CheckWhole(object, nullptr, errors);
}

template <typename Policy>
void CheckPolicyUpdate(const Policy& object, const Policy& old, FieldErrors& errors) {
  CheckWhole(object, &old, errors);
}

template <typename Policy>
void RegisterPolicy(RuleTable& table) {
  table.Add<Policy, CheckPolicy<Policy>>();
  table.AddUpdate<Policy, CheckPolicyUpdate<Policy>>(true);
}

}  // namespace

void RegisterAdmissionPolicyRules(RuleTable& table) {
  RegisterPolicy<ValidatingAdmissionPolicy>(table);
  table.AddStatus<ValidatingAdmissionPolicy, CheckValidatingPolicyStatus>();
  table.Add<ValidatingAdmissionPolicyBinding, CheckValidatingBinding>();
  RegisterPolicy<MutatingAdmissionPolicy>(table);
  table.Add<MutatingAdmissionPolicyBinding, CheckMutatingBinding>();
}

}  // namespace keelson::k8s
