// Configurations of admission webhooks.
#include <algorithm>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/validation/extension/admission_rules.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

using admissionregistrationv1::MutatingWebhook;
using admissionregistrationv1::MutatingWebhookConfiguration;
using admissionregistrationv1::ValidatingWebhookConfiguration;

constexpr int32_t kHttps = 443;

void CheckResourceNames(const Strings& resources, const Path& path, FieldErrors& errors) {
  if (resources.empty()) errors.push_back(Required(path));
  std::set<std::string_view> with_all_subresources, of_all_resources;
  bool all = false, any_resource = false, plain = false;
  for (int i = 0; i < resources.size(); ++i) {
    const std::string_view resource = resources[i];
    if (resource.empty()) {
      errors.push_back(Required(path.Index(i)));
      continue;
    }
    all = all || resource == "*/*";
    any_resource = any_resource || resource == "*";
    const size_t slash = resource.find('/');
    if (slash == std::string_view::npos) {
      plain = plain || resource != "*";
      continue;
    }
    const std::string_view name = resource.substr(0, slash), sub = resource.substr(slash + 1);
    if (with_all_subresources.count(name)) {
      errors.push_back(Invalid(path.Index(i), resource,
                               fmt::format("if '{}/*' is present, must not specify {}", name, resource)));
    }
    if (of_all_resources.count(sub)) {
      errors.push_back(Invalid(path.Index(i), resource,
                               fmt::format("if '*/{}' is present, must not specify {}", sub, resource)));
    }
    if (sub == "*") with_all_subresources.insert(name);
    if (name == "*") of_all_resources.insert(sub);
  }
  if (resources.size() > 1 && all) {
    errors.push_back(
        InvalidRaw(path, PrintStrings(resources), "if '*/*' is present, must not specify other resources"));
  }
  if (any_resource && plain) {
    errors.push_back(InvalidRaw(path, PrintStrings(resources),
                                "if '*' is present, must not specify other resources without subresources"));
  }
}

void CheckReviewVersions(const Strings& versions, const Path& path, FieldErrors& errors) {
  if (versions.empty()) {
    errors.push_back(Required(path, "must specify one of v1, v1beta1"));
    return;
  }
  std::set<std::string_view> seen;
  for (int i = 0; i < versions.size(); ++i) {
    if (!seen.insert(versions[i]).second) {
      errors.push_back(Invalid(path.Index(i), versions[i], "duplicate version"));
      continue;
    }
    AddProblems(CheckDns1035Label(versions[i]), versions[i], path.Index(i), errors);
  }
  if (!seen.count("v1") && !seen.count("v1beta1")) {
    errors.push_back(InvalidRaw(path, PrintStrings(versions), "must include at least one of v1, v1beta1"));
  }
}

void CheckClient(const admissionregistrationv1::WebhookClientConfig& client, const Path& path,
                 FieldErrors& errors) {
  if (client.has_url() == client.has_service()) {
    errors.push_back(Required(path, "exactly one of url or service is required"));
  } else if (client.has_url()) {
    CheckWebhookUrl(client.url(), path.Child("url"), errors);
  } else {
    const admissionregistrationv1::ServiceReference& service = client.service();
    CheckWebhookService(service.namespace_(), service.name(), service.has_path() ? &service.path() : nullptr,
                        service.has_port() ? service.port() : kHttps, path.Child("service"), errors);
  }
}

void CheckReinvocation(const MutatingWebhook& webhook, const Path& path, FieldErrors& errors) {
  if (!webhook.has_reinvocation_policy()) return;
  CheckOneOf(webhook.reinvocation_policy(), {"IfNeeded", "Never"}, path.Child("reinvocationPolicy"), errors);
}
void CheckReinvocation(const admissionregistrationv1::ValidatingWebhook&, const Path&, FieldErrors&) {}

template <typename Webhook>
void CheckWebhook(const Webhook& webhook, const Path& path, FieldErrors& errors) {
  CheckFullyQualifiedName(webhook.name(), path.Child("name"), errors);
  const Path rules = path.Child("rules");
  for (int i = 0; i < webhook.rules_size(); ++i) {
    CheckRuleWithOperations(webhook.rules(i), rules.Index(i), errors);
  }
  if (webhook.has_failure_policy()) {
    CheckOneOf(webhook.failure_policy(), {"Fail", "Ignore"}, path.Child("failurePolicy"), errors);
  }
  if (webhook.has_match_policy()) {
    CheckOneOf(webhook.match_policy(), {"Equivalent", "Exact"}, path.Child("matchPolicy"), errors);
  }
  if (!webhook.has_side_effects()) {
    errors.push_back(Required(path.Child("sideEffects"), "must specify one of None, NoneOnDryRun"));
  } else {
    CheckOneOf(webhook.side_effects(), {"None", "NoneOnDryRun"}, path.Child("sideEffects"), errors);
  }
  if (webhook.has_timeout_seconds() && (webhook.timeout_seconds() > 30 || webhook.timeout_seconds() < 1)) {
    errors.push_back(Invalid(path.Child("timeoutSeconds"), int64_t{webhook.timeout_seconds()},
                             "the timeout value must be between 1 and 30 seconds"));
  }
  CheckReinvocation(webhook, path, errors);
  if (webhook.has_namespace_selector()) {
    CheckLabelSelector(webhook.namespace_selector(), path.Child("namespaceSelector"), errors);
  }
  if (webhook.has_object_selector()) {
    CheckLabelSelector(webhook.object_selector(), path.Child("objectSelector"), errors);
  }
  CheckClient(webhook.client_config(), path.Child("clientConfig"), errors);
}

// Conditions that do not change are not looked at again.
template <typename Configuration>
bool ConditionsChange(const Configuration& object, const Configuration& old) {
  return !std::equal(object.webhooks().begin(), object.webhooks().end(), old.webhooks().begin(),
                     old.webhooks().end(), [](const auto& a, const auto& b) {
                       return SameConditions(a.match_conditions(), b.match_conditions());
                     });
}

// `old` null: the object is new.
template <typename Configuration>
void CheckWhole(const Configuration& object, const Configuration* old, FieldErrors& errors) {
  const Path list("webhooks");
  const bool compile = !old || ConditionsChange(object, *old);
  std::set<std::string_view> known;
  if (old) {
    for (const auto& webhook : old->webhooks()) AddExpressions(webhook.match_conditions(), known);
  }
  std::set<std::string_view> names;
  for (int i = 0; i < object.webhooks_size(); ++i) {
    const auto& webhook = object.webhooks(i);
    const Path item = list.Index(i);
    CheckWebhook(webhook, item, errors);
    if (compile) {
      CheckMatchConditions(webhook.match_conditions(), false, known, item.Child("matchConditions"), errors);
    }
    CheckReviewVersions(webhook.admission_review_versions(), item.Child("admissionReviewVersions"), errors);
    if (!webhook.name().empty() && !names.insert(webhook.name()).second) {
      errors.push_back(Duplicate(item.Child("name"), webhook.name()));
    }
  }
}

template <typename Configuration>
void CheckConfiguration(const Configuration& object, FieldErrors& errors) {
  CheckWhole<Configuration>(object, nullptr, errors);
}

template <typename Configuration>
void CheckConfigurationUpdate(const Configuration& object, const Configuration& old, FieldErrors& errors) {
  CheckWhole(object, &old, errors);
}

template <typename Configuration>
void Register(RuleTable& table) {
  table.Add<Configuration, CheckConfiguration<Configuration>>();
  table.AddUpdate<Configuration, CheckConfigurationUpdate<Configuration>>(true);
}

}  // namespace

void CheckRuleWithOperations(const admissionregistrationv1::RuleWithOperations& rule, const Path& path,
                             FieldErrors& errors) {
  const Path operations = path.Child("operations"), groups = path.Child("apiGroups"),
             versions = path.Child("apiVersions");
  if (rule.operations().empty()) errors.push_back(Required(operations));
  CheckLoneWildcard(rule.operations(), "operations", operations, errors);
  for (int i = 0; i < rule.operations_size(); ++i) {
    CheckOneOf(rule.operations(i), {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"}, operations.Index(i),
               errors);
  }
  if (rule.rule().api_groups().empty()) errors.push_back(Required(groups));
  CheckLoneWildcard(rule.rule().api_groups(), "API groups", groups, errors);
  if (rule.rule().api_versions().empty()) errors.push_back(Required(versions));
  CheckLoneWildcard(rule.rule().api_versions(), "API versions", versions, errors);
  for (int i = 0; i < rule.rule().api_versions_size(); ++i) {
    if (rule.rule().api_versions(i).empty()) errors.push_back(Required(versions.Index(i)));
  }
  CheckResourceNames(rule.rule().resources(), path.Child("resources"), errors);
  if (rule.rule().has_scope()) {
    CheckOneOf(rule.rule().scope(), {"*", "Cluster", "Namespaced"}, path.Child("scope"), errors);
  }
}

void RegisterWebhookRules(RuleTable& table) {
  Register<MutatingWebhookConfiguration>(table);
  Register<ValidatingWebhookConfiguration>(table);
}

}  // namespace keelson::k8s
