// What pods say about nodes, and the resources that they ask for.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/validate_internal.h"

namespace keelson::k8s {

namespace {

using Terms = google::protobuf::RepeatedPtrField<corev1::PodAffinityTerm>;
using WeightedTerms = google::protobuf::RepeatedPtrField<corev1::WeightedPodAffinityTerm>;
using Requirements = google::protobuf::RepeatedPtrField<corev1::NodeSelectorRequirement>;

void CheckRequirement(const corev1::NodeSelectorRequirement& requirement, const Path& path,
                      FieldErrors& errors) {
  const std::string& op = requirement.operator_();
  if (op == "In" || op == "NotIn") {
    if (requirement.values().empty()) {
      errors.push_back(
          Required(path.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!requirement.values().empty()) {
      errors.push_back(Forbidden(path.Child("values"),
                                 "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if (op == "Gt" || op == "Lt") {
    if (requirement.values_size() != 1) {
      errors.push_back(
          Required(path.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  } else {
    errors.push_back(Invalid(path.Child("operator"), op, "not a valid selector operator"));
  }
  CheckLabelKey(requirement.key(), path.Child("key"), errors);
}

void CheckField(const corev1::NodeSelectorRequirement& requirement, const Path& path, FieldErrors& errors) {
  const std::string& op = requirement.operator_();
  if (op != "In" && op != "NotIn") {
    errors.push_back(Invalid(path.Child("operator"), op, "not a valid selector operator"));
  } else if (requirement.values_size() != 1) {
    errors.push_back(
        Required(path.Child("values"),
                 "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"));
  }
  if (requirement.key() != "metadata.name") {
    errors.push_back(Invalid(path.Child("key"), requirement.key(), "not a valid field selector key"));
    return;
  }
  const Path values = path.Child("values");
  for (int i = 0; i < requirement.values_size(); ++i) {
    AddProblems(CheckDns1123Subdomain(requirement.values(i)), requirement.values(i), values.Index(i), errors);
  }
}

void CheckTerm(const corev1::NodeSelectorTerm& term, const Path& path, FieldErrors& errors) {
  const Path expressions = path.Child("matchExpressions"), fields = path.Child("matchFields");
  for (int i = 0; i < term.match_expressions_size(); ++i) {
    CheckRequirement(term.match_expressions(i), expressions.Index(i), errors);
  }
  for (int i = 0; i < term.match_fields_size(); ++i) {
    CheckField(term.match_fields(i), fields.Index(i), errors);
  }
}

void CheckPodTerm(const corev1::PodAffinityTerm& term, const Path& path, FieldErrors& errors) {
  if (term.has_label_selector())
    CheckLabelSelector(term.label_selector(), path.Child("labelSelector"), errors);
  if (term.has_namespace_selector()) {
    CheckLabelSelector(term.namespace_selector(), path.Child("namespaceSelector"), errors);
  }
  for (const std::string& ns : term.namespaces()) {
    AddProblems(CheckDns1123Label(ns), ns, path.Child("namespace"), errors);
  }
  if (term.topology_key().empty()) errors.push_back(Required(path.Child("topologyKey"), "can not be empty"));
  CheckLabelKey(term.topology_key(), path.Child("topologyKey"), errors);
}

void CheckWeight(int32_t weight, const Path& path, FieldErrors& errors) {
  if (weight < 1 || weight > 100) {
    errors.push_back(Invalid(path.Child("weight"), int64_t{weight}, "must be in the range 1-100"));
  }
}

void CheckPodTerms(const Terms& required, const WeightedTerms& preferred, const Path& path,
                   FieldErrors& errors) {
  const Path hard = path.Child("requiredDuringSchedulingIgnoredDuringExecution");
  for (int i = 0; i < required.size(); ++i) CheckPodTerm(required[i], hard.Index(i), errors);
  const Path soft = path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  for (int i = 0; i < preferred.size(); ++i) {
    const Path item = soft.Index(i);
    CheckWeight(preferred[i].weight(), item, errors);
    CheckPodTerm(preferred[i].pod_affinity_term(), item.Child("podAffinityTerm"), errors);
  }
}

bool IsStandardContainerResource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || IsHugePages(name);
}

bool MayOvercommit(std::string_view name) { return IsNativeResource(name) && !IsHugePages(name); }

void CheckResourceName(std::string_view name, const Path& path, FieldErrors& errors) {
  const Problems problems = CheckQualifiedName(name);
  AddProblems(problems, name, path, errors);
  if (problems.empty() && name.find('/') == std::string_view::npos && !IsStandardContainerResource(name)) {
    errors.push_back(Invalid(path, name, "must be a standard resource for containers"));
  }
}

void CheckRequest(const std::string& name, const Quantity& request, const QuantityMap& limits,
                  const Path& path, FieldErrors& errors) {
  const auto limit = limits.find(name);
  const Path requests = path.Child("requests");
  if (limit == limits.end()) {
    if (!MayOvercommit(name)) {
      errors.push_back(Required(path.Child("limits"), "Limit must be set for non overcommitable resources"));
    }
    return;
  }
  const api::Amount asked = api::Amount::Of(request), allowed = api::Amount::Of(limit->second);
  if (!MayOvercommit(name) && !(asked == allowed)) {
    errors.push_back(Invalid(requests, asked.ToString(),
                             fmt::format("must be equal to {} limit of {}", name, allowed.ToString())));
  } else if (MayOvercommit(name) && asked > allowed) {
    errors.push_back(
        Invalid(requests, asked.ToString(),
                fmt::format("must be less than or equal to {} limit of {}", name, allowed.ToString())));
  }
}

}  // namespace

void CheckNodeSelector(const corev1::NodeSelector& selector, const Path& path, FieldErrors& errors) {
  const Path terms = path.Child("nodeSelectorTerms");
  if (selector.node_selector_terms().empty()) {
    errors.push_back(Required(terms, "must have at least one node selector term"));
  }
  for (int i = 0; i < selector.node_selector_terms_size(); ++i) {
    CheckTerm(selector.node_selector_terms(i), terms.Index(i), errors);
  }
}

void CheckAffinity(const corev1::Affinity& affinity, const Path& path, FieldErrors& errors) {
  if (affinity.has_node_affinity()) {
    const corev1::NodeAffinity& node = affinity.node_affinity();
    const Path here = path.Child("nodeAffinity");
    if (node.has_required_during_scheduling_ignored_during_execution()) {
      CheckNodeSelector(node.required_during_scheduling_ignored_during_execution(),
                        here.Child("requiredDuringSchedulingIgnoredDuringExecution"), errors);
    }
    const Path soft = here.Child("preferredDuringSchedulingIgnoredDuringExecution");
    for (int i = 0; i < node.preferred_during_scheduling_ignored_during_execution_size(); ++i) {
      const auto& term = node.preferred_during_scheduling_ignored_during_execution(i);
      const Path item = soft.Index(i);
      CheckWeight(term.weight(), item, errors);
      CheckTerm(term.preference(), item.Child("preference"), errors);
    }
  }
  if (affinity.has_pod_affinity()) {
    const corev1::PodAffinity& pod = affinity.pod_affinity();
    CheckPodTerms(pod.required_during_scheduling_ignored_during_execution(),
                  pod.preferred_during_scheduling_ignored_during_execution(), path.Child("podAffinity"),
                  errors);
  }
  if (affinity.has_pod_anti_affinity()) {
    const corev1::PodAntiAffinity& pod = affinity.pod_anti_affinity();
    CheckPodTerms(pod.required_during_scheduling_ignored_during_execution(),
                  pod.preferred_during_scheduling_ignored_during_execution(), path.Child("podAntiAffinity"),
                  errors);
  }
}

void CheckTolerations(const google::protobuf::RepeatedPtrField<corev1::Toleration>& tolerations,
                      const Path& path, FieldErrors& errors) {
  for (int i = 0; i < tolerations.size(); ++i) {
    const corev1::Toleration& toleration = tolerations[i];
    const Path item = path.Index(i);
    const std::string& op = toleration.operator_();
    if (!toleration.key().empty()) CheckLabelKey(toleration.key(), item.Child("key"), errors);
    if (toleration.key().empty() && op != "Exists") {
      errors.push_back(
          Invalid(item.Child("operator"), op,
                  "operator must be Exists when `key` is empty, which means \"match all values and "
                  "all keys\""));
    }
    if (toleration.has_toleration_seconds() && toleration.effect() != "NoExecute") {
      errors.push_back(Invalid(item.Child("effect"), toleration.effect(),
                               "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    if (op.empty() || op == "Equal") {
      for (const std::string& problem : CheckLabelValue(toleration.value())) {
        errors.push_back(Invalid(item.Child("operator"), toleration.value(), problem));
      }
    } else if (op == "Exists") {
      if (!toleration.value().empty()) {
        errors.push_back(Invalid(item.Child("operator"), toleration.value(),
                                 "value must be empty when `operator` is 'Exists'"));
      }
    } else {
      errors.push_back(NotSupported(item.Child("operator"), op, {"Equal", "Exists"}));
    }
    if (!toleration.effect().empty()) {
      CheckEnum(toleration.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"}, item.Child("effect"),
                errors);
    }
  }
}

void CheckQuantity(std::string_view resource, const Quantity& quantity, const Path& path,
                   FieldErrors& errors) {
  const Result<api::Amount> amount = api::Amount::Parse(quantity.string());
  if (!amount) {
    errors.push_back(Invalid(path, quantity.string(), amount.error().message()));
  } else if (*amount < api::Amount()) {
    errors.push_back(Invalid(path, amount->ToString(), kNotNegative));
  } else if (IsExtendedResource(resource) && amount->MilliValue() % 1000 != 0) {
    errors.push_back(Invalid(path, amount->ToString(), "must be an integer"));
  }
}

void CheckResources(const corev1::ResourceRequirements& resources, const Path& path, FieldErrors& errors) {
  const Path limits = path.Child("limits"), requests = path.Child("requests");
  for (const auto& [name, quantity] : resources.limits()) {
    CheckResourceName(name, limits, errors);
    CheckQuantity(name, quantity, limits.Key(name), errors);
  }
  for (const auto& [name, quantity] : resources.requests()) {
    CheckResourceName(name, requests, errors);
    CheckQuantity(name, quantity, requests.Key(name), errors);
    CheckRequest(name, quantity, resources.limits(), path, errors);
  }
  for (const auto& [name, quantity] : resources.limits()) {
    if (MayOvercommit(name) || resources.requests().contains(name)) continue;
    // A limit alone counts as the request of resources that cannot be shared; only huge pages need more.
    if (!IsHugePages(name)) continue;
    const bool has_base = resources.requests().contains("cpu") || resources.requests().contains("memory") ||
                          resources.limits().contains("cpu") || resources.limits().contains("memory");
    if (!has_base) errors.push_back(Forbidden(path, "HugePages require cpu or memory"));
  }
}

}  // namespace keelson::k8s
