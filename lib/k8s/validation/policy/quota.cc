// Resource quotas, and the resource names that they and limit ranges accept.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kCounted[] = {"configmaps",
                                         "persistentvolumeclaims",
                                         "pods",
                                         "replicationcontrollers",
                                         "resourcequotas",
                                         "secrets",
                                         "services",
                                         "services.loadbalancers",
                                         "services.nodeports"};
constexpr std::string_view kMeasured[] = {"cpu",
                                          "memory",
                                          "ephemeral-storage",
                                          "requests.cpu",
                                          "requests.memory",
                                          "limits.cpu",
                                          "limits.memory",
                                          "requests.ephemeral-storage",
                                          "limits.ephemeral-storage",
                                          "requests.storage"};
constexpr std::string_view kOfPods[] = {"pods",          "cpu",          "memory",         "limits.cpu",
                                        "limits.memory", "requests.cpu", "requests.memory"};
constexpr std::string_view kScopes[] = {
    "Terminating",   "NotTerminating",       "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity",
    "PriorityClass", "VolumeAttributesClass"};

template <size_t N>
bool In(const std::string_view (&list)[N], std::string_view value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

bool IsQuotaHugePages(std::string_view name) {
  return name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
}

bool ScopeFits(std::string_view scope, std::string_view resource) {
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") {
    return resource == "persistentvolumeclaims" || resource == "requests.storage";
  }
  return In(kScopes, scope) ? In(kOfPods, resource) : true;
}

// Which scopes may be combined with each other, and with the limited resources.
struct ScopeCheck {
  const corev1::ResourceQuotaSpec& spec;
  FieldErrors& errors;
  std::set<std::string_view> seen = {};

  template <typename Complain>
  void One(std::string_view scope, const Complain& unsupported, const Complain& unfit) {
    if (!In(kScopes, scope)) unsupported();
    for (const std::string& resource : SortedKeys(spec.hard())) {
      if (IsStandardQuotaResource(resource) && !ScopeFits(scope, resource)) unfit();
    }
    seen.insert(scope);
  }
  void Pairs(const Path& path) {
    const std::pair<std::string_view, std::string_view> pairs[] = {{"BestEffort", "NotBestEffort"},
                                                                   {"Terminating", "NotTerminating"}};
    for (const auto& [one, other] : pairs) {
      if (!seen.count(one) || !seen.count(other)) continue;
      errors.push_back(InvalidRaw(path, PrintStrings(spec.scopes()), "conflicting scopes"));
    }
  }
};

void CheckScopes(const corev1::ResourceQuotaSpec& spec, const Path& path, FieldErrors& errors) {
  if (spec.scopes().empty()) return;
  ScopeCheck check{spec, errors};
  const std::function<void()> unsupported = [&] {
    errors.push_back(InvalidRaw(path, PrintStrings(spec.scopes()), "unsupported scope"));
  };
  const std::function<void()> unfit = [&] {
    errors.push_back(InvalidRaw(path, PrintStrings(spec.scopes()), "unsupported scope applied to resource"));
  };
  for (const std::string& scope : spec.scopes()) check.One(scope, unsupported, unfit);
  check.Pairs(path);
}

void CheckScopeOperator(const corev1::ScopedResourceSelectorRequirement& requirement, const Path& path,
                        FieldErrors& errors) {
  const std::string& op = requirement.operator_();
  const bool by_value =
      requirement.scope_name() == "PriorityClass" || requirement.scope_name() == "VolumeAttributesClass";
  if (In(kScopes, requirement.scope_name()) && !by_value && op != "Exists") {
    errors.push_back(
        Invalid(path.Child("operator"), op,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"));
  }
  if (op == "In" || op == "NotIn") {
    if (requirement.values().empty()) {
      errors.push_back(
          Required(path.Child("values"),
                   "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!requirement.values().empty()) {
      errors.push_back(
          InvalidRaw(path.Child("values"), PrintStrings(requirement.values()),
                     "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"));
    }
  } else {
    errors.push_back(Invalid(path.Child("operator"), op, "not a valid selector operator"));
  }
}

void CheckScopeSelector(const corev1::ResourceQuotaSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_scope_selector()) return;
  ScopeCheck check{spec, errors};
  for (const auto& requirement : spec.scope_selector().match_expressions()) {
    const std::function<void()> unsupported = [&] {
      errors.push_back(Invalid(path.Child("scopeName"), requirement.scope_name(), "unsupported scope"));
    };
    const std::function<void()> unfit = [&] {
      errors.push_back(InvalidInternal(path, spec.scope_selector(), "unsupported scope applied to resource"));
    };
    check.One(requirement.scope_name(), unsupported, unfit);
    CheckScopeOperator(requirement, path, errors);
  }
  check.Pairs(path);
}

void CheckAmounts(const QuantityMap& amounts, const Path& path, FieldErrors& errors) {
  for (const std::string& name : SortedKeys(amounts)) {
    CheckQuotaResource(name, path.Key(name), errors);
    CheckResourceAmount(name, amounts.at(name), path.Key(name), errors);
  }
}

void CheckQuotaSpec(const corev1::ResourceQuotaSpec& spec, FieldErrors& errors) {
  const Path path("spec");
  CheckAmounts(spec.hard(), path.Child("hard"), errors);
  CheckScopes(spec, path.Child("scopes"), errors);
  CheckScopeSelector(spec, path.Child("scopeSelector").Child("matchExpressions"), errors);
}

void CheckQuotaStatus(const corev1::ResourceQuota& object, const corev1::ResourceQuota&,
                      FieldErrors& errors) {
  const Path path("status");
  CheckAmounts(object.status().hard(), path.Child("hard"), errors);
  CheckAmounts(object.status().used(), path.Child("used"), errors);
}

void CheckQuota(const corev1::ResourceQuota& object, FieldErrors& errors) {
  CheckQuotaSpec(object.spec(), errors);
  CheckQuotaStatus(object, object, errors);
}

void CheckQuotaUpdate(const corev1::ResourceQuota& object, const corev1::ResourceQuota& old,
                      FieldErrors& errors) {
  CheckQuotaSpec(object.spec(), errors);
  const Strings &now = object.spec().scopes(), &before = old.spec().scopes();
  if (std::set<std::string>(now.begin(), now.end()) != std::set<std::string>(before.begin(), before.end())) {
    errors.push_back(InvalidRaw(Path("spec").Child("scopes"), PrintStrings(now), kImmutable));
  }
}

}  // namespace

bool IsCountedResource(std::string_view name) { return In(kCounted, name); }

bool IsStandardQuotaResource(std::string_view name) {
  return In(kCounted, name) || In(kMeasured, name) || IsQuotaHugePages(name);
}

void CheckAnyResource(std::string_view name, const Path& path, FieldErrors& errors) {
  const Problems problems = CheckQualifiedName(name);
  AddProblems(problems, name, path, errors);
  if (!problems.empty() || name.find('/') != std::string_view::npos) return;
  if (!IsStandardQuotaResource(name) && name != "storage") {
    errors.push_back(Invalid(path, name, "must be a standard resource type or fully qualified"));
  }
}

void CheckQuotaResource(std::string_view name, const Path& path, FieldErrors& errors) {
  CheckAnyResource(name, path, errors);
  if (name.find('/') == std::string_view::npos && !IsStandardQuotaResource(name)) {
    errors.push_back(Invalid(path, name, "must be a standard resource for quota"));
  }
}

void CheckResourceAmount(std::string_view name, const Quantity& quantity, const Path& path,
                         FieldErrors& errors) {
  CheckNonNegativeQuantity(quantity, path, errors);
  const api::Amount amount = api::Amount::Of(quantity);
  if ((IsCountedResource(name) || IsExtendedResource(name)) && amount.MilliValue() % 1000 != 0) {
    errors.push_back(Invalid(path, amount.ToString(), "must be an integer"));
  }
}

void RegisterQuotaRules(RuleTable& table) {
  table.Add<corev1::ResourceQuota, CheckQuota>();
  table.AddUpdate<corev1::ResourceQuota, CheckQuotaUpdate>(true);
  table.AddStatus<corev1::ResourceQuota, CheckQuotaStatus>();
}

}  // namespace keelson::k8s
