// Roles and their bindings.
#include "lib/base/text.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr char kGroup[] = "rbac.authorization.k8s.io";

using Rules = google::protobuf::RepeatedPtrField<rbacv1::PolicyRule>;
using Subjects = google::protobuf::RepeatedPtrField<rbacv1::Subject>;

void CheckRules(const Rules& rules, bool namespaced, FieldErrors& errors) {
  const Path list("rules");
  for (int i = 0; i < rules.size(); ++i) {
    const rbacv1::PolicyRule& rule = rules[i];
    const Path item = list.Index(i);
    if (rule.verbs().empty()) {
      errors.push_back(Required(item.Child("verbs"), "verbs must contain at least one value"));
    }
    if (!rule.non_resource_urls().empty()) {
      const Path urls = item.Child("nonResourceURLs");
      const std::string printed = PrintStrings(rule.non_resource_urls());
      if (namespaced) {
        errors.push_back(InvalidRaw(urls, printed, "namespaced rules cannot apply to non-resource URLs"));
      }
      if (!rule.api_groups().empty() || !rule.resources().empty() || !rule.resource_names().empty()) {
        errors.push_back(
            InvalidRaw(urls, printed, "rules cannot apply to both regular resources and non-resource URLs"));
      }
      continue;
    }
    if (rule.api_groups().empty()) {
      errors.push_back(
          Required(item.Child("apiGroups"), "resource rules must supply at least one api group"));
    }
    if (rule.resources().empty()) {
      errors.push_back(Required(item.Child("resources"), "resource rules must supply at least one resource"));
    }
  }
}

void CheckRole(const rbacv1::Role& object, FieldErrors& errors) { CheckRules(object.rules(), true, errors); }

void CheckClusterRole(const rbacv1::ClusterRole& object, FieldErrors& errors) {
  CheckRules(object.rules(), false, errors);
  if (!object.has_aggregation_rule()) return;
  const Path rule("aggregationRule");
  const Path list = rule.Child("clusterRoleSelectors");
  if (object.aggregation_rule().cluster_role_selectors().empty()) {
    errors.push_back(
        Required(list, "at least one clusterRoleSelector required if aggregationRule is non-nil"));
  }
  for (int i = 0; i < object.aggregation_rule().cluster_role_selectors_size(); ++i) {
    CheckLabelSelector(object.aggregation_rule().cluster_role_selectors(i), list.Index(i), errors);
  }
}

void CheckSubjects(const Subjects& subjects, bool namespaced, FieldErrors& errors) {
  const Path list("subjects");
  for (int i = 0; i < subjects.size(); ++i) {
    const rbacv1::Subject& subject = subjects[i];
    const Path item = list.Index(i);
    if (subject.name().empty()) errors.push_back(Required(item.Child("name")));
    if (subject.kind() == "ServiceAccount") {
      if (!subject.name().empty()) {
        AddProblems(CheckDns1123Subdomain(subject.name()), subject.name(), item.Child("name"), errors);
      }
      if (!subject.api_group().empty()) {
        errors.push_back(NotSupported(item.Child("apiGroup"), subject.api_group(), {""}));
      }
      if (!namespaced && subject.namespace_().empty()) errors.push_back(Required(item.Child("namespace")));
    } else if (subject.kind() == "User" || subject.kind() == "Group") {
      if (subject.name().empty()) {
        errors.push_back(Invalid(item.Child("name"), "", Lower(subject.kind()) + " name cannot be empty"));
      }
      if (subject.api_group() != kGroup) {
        errors.push_back(NotSupported(item.Child("apiGroup"), subject.api_group(), {kGroup}));
      }
    } else {
      errors.push_back(NotSupported(item.Child("kind"), subject.kind(), {"ServiceAccount", "User", "Group"}));
    }
  }
}

void CheckRef(const rbacv1::RoleRef& ref, const std::vector<std::string_view>& kinds, FieldErrors& errors) {
  const Path path("roleRef");
  if (ref.api_group() != kGroup) {
    errors.push_back(NotSupported(path.Child("apiGroup"), ref.api_group(), {kGroup}));
  }
  bool known = false;
  for (std::string_view kind : kinds) known = known || kind == ref.kind();
  if (!known) errors.push_back(NotSupported(path.Child("kind"), ref.kind(), kinds));
  CheckName(ref.name(), CheckPathSegmentName, path.Child("name"), errors);
}

void CheckRoleBinding(const rbacv1::RoleBinding& object, FieldErrors& errors) {
  CheckRef(object.role_ref(), {"Role", "ClusterRole"}, errors);
  CheckSubjects(object.subjects(), true, errors);
}

void CheckClusterRoleBinding(const rbacv1::ClusterRoleBinding& object, FieldErrors& errors) {
  CheckRef(object.role_ref(), {"ClusterRole"}, errors);
  CheckSubjects(object.subjects(), false, errors);
}

template <typename T>
void CheckBindingUpdate(const T& object, const T& old, FieldErrors& errors) {
  if (SameMessage(object.role_ref(), old.role_ref())) return;
  errors.push_back(InvalidInternal(Path("roleRef"), object.role_ref(), "cannot change roleRef"));
}

}  // namespace

void RegisterRbacRules(RuleTable& table) {
  table.Add<rbacv1::Role, CheckRole>().name = CheckPathSegmentName;
  table.Add<rbacv1::ClusterRole, CheckClusterRole>().name = CheckPathSegmentName;
  table.Add<rbacv1::RoleBinding, CheckRoleBinding>().name = CheckPathSegmentName;
  table.Add<rbacv1::ClusterRoleBinding, CheckClusterRoleBinding>().name = CheckPathSegmentName;
  table.AddUpdate<rbacv1::RoleBinding, CheckBindingUpdate<rbacv1::RoleBinding>>();
  table.AddUpdate<rbacv1::ClusterRoleBinding, CheckBindingUpdate<rbacv1::ClusterRoleBinding>>();
}

}  // namespace keelson::k8s
