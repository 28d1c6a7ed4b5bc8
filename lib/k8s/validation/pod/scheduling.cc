// Node selection, affinity, tolerations and topology spread.
#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

using Terms = google::protobuf::RepeatedPtrField<corev1::PodAffinityTerm>;
using WeightedTerms = google::protobuf::RepeatedPtrField<corev1::WeightedPodAffinityTerm>;

// Preferred terms may have any values: they just match nothing.
void CheckRequirement(const corev1::NodeSelectorRequirement& requirement, bool preferred, const Path& path,
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
  if (preferred) return;
  const Path values = path.Child("values");
  for (int i = 0; i < requirement.values_size(); ++i) {
    AddProblems(CheckLabelValue(requirement.values(i)), requirement.values(i), values.Index(i), errors);
  }
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

void CheckTerm(const corev1::NodeSelectorTerm& term, bool preferred, const Path& path, FieldErrors& errors) {
  const Path expressions = path.Child("matchExpressions"), fields = path.Child("matchFields");
  for (int i = 0; i < term.match_expressions_size(); ++i) {
    CheckRequirement(term.match_expressions(i), preferred, expressions.Index(i), errors);
  }
  for (int i = 0; i < term.match_fields_size(); ++i) {
    CheckField(term.match_fields(i), fields.Index(i), errors);
  }
}

void CheckKeys(const Strings& keys, bool has_selector, const Path& path, FieldErrors& errors) {
  if (keys.empty()) return;
  if (!has_selector) {
    errors.push_back(Forbidden(path, "must not be specified when labelSelector is not set"));
    return;
  }
  for (int i = 0; i < keys.size(); ++i) CheckLabelKey(keys[i], path.Index(i), errors);
}

// The registry has already added requirements for matchLabelKeys to the selector: a second one for the same
// key is the user's.
void CheckMatchLabelKeys(const corev1::PodAffinityTerm& term, const Path& path, FieldErrors& errors) {
  CheckKeys(term.match_label_keys(), term.has_label_selector(), path.Child("matchLabelKeys"), errors);
  CheckKeys(term.mismatch_label_keys(), term.has_label_selector(), path.Child("mismatchLabelKeys"), errors);
  std::set<std::string_view> selected;
  for (const auto& label : term.label_selector().match_labels()) selected.insert(label.first);
  const Strings& keys = term.match_label_keys();
  for (const auto& requirement : term.label_selector().match_expressions()) {
    const auto found = std::find(keys.rbegin(), keys.rend(), requirement.key());
    if (!selected.insert(requirement.key()).second && found != keys.rend()) {
      const int index = static_cast<int>(keys.rend() - found) - 1;
      errors.push_back(
          Invalid(path.Index(index), requirement.key(), "exists in both matchLabelKeys and labelSelector"));
    }
  }
  const Path list = path.Child("matchLabelKeys");
  for (int i = 0; i < keys.size(); ++i) {
    const auto& others = term.mismatch_label_keys();
    if (std::find(others.begin(), others.end(), keys[i]) == others.end()) continue;
    errors.push_back(Invalid(list.Index(i), keys[i], "exists in both matchLabelKeys and mismatchLabelKeys"));
  }
}

void CheckPodTerm(const corev1::PodAffinityTerm& term, const Path& path, FieldErrors& errors) {
  if (term.has_label_selector()) {
    CheckLabelSelector(term.label_selector(), path.Child("labelSelector"), errors);
  }
  if (term.has_namespace_selector()) {
    CheckLabelSelector(term.namespace_selector(), path.Child("namespaceSelector"), errors);
  }
  for (const std::string& ns : term.namespaces()) {
    AddProblems(CheckDns1123Label(ns), ns, path.Child("namespace"), errors);
  }
  CheckMatchLabelKeys(term, path, errors);
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

}  // namespace

void CheckNodeSelector(const corev1::NodeSelector& selector, const Path& path, FieldErrors& errors) {
  const Path terms = path.Child("nodeSelectorTerms");
  if (selector.node_selector_terms().empty()) {
    errors.push_back(Required(terms, "must have at least one node selector term"));
    return;
  }
  for (int i = 0; i < selector.node_selector_terms_size(); ++i) {
    CheckTerm(selector.node_selector_terms(i), false, terms.Index(i), errors);
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
      CheckTerm(term.preference(), true, item.Child("preference"), errors);
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
      const Problems problems = CheckLabelValue(toleration.value());
      if (!problems.empty()) {
        errors.push_back(
            Invalid(item.Child("operator"), toleration.value(), fmt::format("{}", fmt::join(problems, ";"))));
      }
    } else if (op == "Exists") {
      if (!toleration.value().empty()) {
        errors.push_back(Invalid(item.Child("operator"), toleration.value(),
                                 "value must be empty when `operator` is 'Exists'"));
      }
    } else if (op == "Lt" || op == "Gt") {
      // These operators exist, but need a feature that is off in 1.36.
      errors.push_back(NotSupported(item.Child("operator"), op, {"Equal", "Exists", "Lt", "Gt"}));
    } else {
      errors.push_back(NotSupported(item.Child("operator"), op, {"Equal", "Exists"}));
    }
    if (!toleration.effect().empty()) {
      CheckEnum(toleration.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"}, item.Child("effect"),
                errors);
    }
  }
}

namespace {

void CheckInclusion(bool present, const std::string& policy, const Path& path, FieldErrors& errors) {
  if (present && policy != "Honor" && policy != "Ignore") {
    errors.push_back(NotSupported(path, policy, {"Honor", "Ignore"}));
  }
}

void CheckMinDomains(const corev1::TopologySpreadConstraint& constraint, const Path& path,
                     FieldErrors& errors) {
  if (!constraint.has_min_domains()) return;
  const int64_t domains = constraint.min_domains();
  if (domains <= 0) errors.push_back(Invalid(path, domains, "must be greater than zero"));
  if (constraint.when_unsatisfiable() == "DoNotSchedule") return;
  errors.push_back(Invalid(path, domains,
                           fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                                       constraint.when_unsatisfiable())));
}

// As in affinity terms, the selector already has the keys, once.
void CheckSpreadKeys(const corev1::TopologySpreadConstraint& constraint, const Path& path,
                     FieldErrors& errors) {
  const Strings& keys = constraint.match_label_keys();
  if (keys.empty()) return;
  if (!constraint.has_label_selector()) {
    errors.push_back(Forbidden(path, "must not be specified when labelSelector is not set"));
  }
  const metav1::LabelSelector& selector = constraint.label_selector();
  for (int i = 0; i < keys.size(); ++i) {
    CheckLabelKey(keys[i], path.Index(i), errors);
    const auto same_key = [&](const auto& requirement) { return requirement.key() == keys[i]; };
    const auto& requirements = selector.match_expressions();
    const auto times = std::count_if(requirements.begin(), requirements.end(), same_key) +
                       (selector.match_labels().contains(keys[i]) ? 1 : 0);
    if (times > 1) {
      errors.push_back(Invalid(path.Index(i), keys[i], "exists in both matchLabelKeys and labelSelector"));
    }
  }
}

}  // namespace

void CheckSpreadConstraints(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const auto& constraints = spec.topology_spread_constraints();
  for (int i = 0; i < constraints.size(); ++i) {
    const corev1::TopologySpreadConstraint& one = constraints[i];
    const Path item = path.Index(i);
    if (one.max_skew() <= 0) {
      errors.push_back(Invalid(item.Child("maxSkew"), int64_t{one.max_skew()}, "must be greater than zero"));
    }
    if (one.topology_key().empty()) errors.push_back(Required(item.Child("topologyKey"), "can not be empty"));
    const std::string& action = one.when_unsatisfiable();
    if (action != "DoNotSchedule" && action != "ScheduleAnyway") {
      errors.push_back(
          NotSupported(item.Child("whenUnsatisfiable"), action, {"DoNotSchedule", "ScheduleAnyway"}));
    }
    const bool repeated = std::any_of(constraints.begin() + i + 1, constraints.end(), [&](const auto& other) {
      return other.topology_key() == one.topology_key() && other.when_unsatisfiable() == action;
    });
    if (repeated) {
      errors.push_back(Duplicate(item.Child("{topologyKey, whenUnsatisfiable}"),
                                 fmt::format("{{{}, {}}}", one.topology_key(), action)));
    }
    CheckMinDomains(one, item.Child("minDomains"), errors);
    CheckInclusion(one.has_node_affinity_policy(), one.node_affinity_policy(),
                   item.Child("nodeAffinityPolicy"), errors);
    CheckInclusion(one.has_node_taints_policy(), one.node_taints_policy(), item.Child("nodeTaintsPolicy"),
                   errors);
    CheckSpreadKeys(one, item.Child("matchLabelKeys"), errors);
    if (one.has_label_selector()) {
      CheckLabelSelector(one.label_selector(), item.Child("labelSelector"), errors);
    }
  }
}

}  // namespace keelson::k8s
