#include "controlplane/apiserver/authz/bootstrap_policy.h"

#include "controlplane/apiserver/authz/policy_tables.h"

namespace keelson::apiserver {
namespace {

void Split(std::string_view text, google::protobuf::RepeatedPtrField<std::string>& out) {
  for (;;) {
    auto comma = text.find(',');
    out.Add(std::string(text.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

void SetMeta(metav1::ObjectMeta& meta, std::string_view name, std::string_view ns = "") {
  meta.set_name(std::string(name));
  if (!ns.empty()) meta.set_namespace_(std::string(ns));
  (*meta.mutable_labels())["kubernetes.io/bootstrapping"] = "rbac-defaults";
  (*meta.mutable_annotations())["rbac.authorization.kubernetes.io/autoupdate"] = "true";
}

std::string AggregationLabel(std::string_view to) {
  return "rbac.authorization.k8s.io/aggregate-to-" + std::string(to);
}

rbacv1::ClusterRole MakeRole(const RoleRow& row, const std::string& name, const GateOn& on) {
  rbacv1::ClusterRole role;
  SetMeta(*role.mutable_metadata(), name);
  for (const RuleRow& rule : row.rules) {
    if (GatesOn(rule.gates, on)) *role.add_rules() = ToProto(rule);
  }
  if (!row.aggregate_to.empty()) {
    (*role.mutable_metadata()->mutable_labels())[AggregationLabel(row.aggregate_to)] = "true";
  }
  if (!row.aggregate_from.empty()) {
    auto& labels = *role.mutable_aggregation_rule()->add_cluster_role_selectors()->mutable_match_labels();
    labels[AggregationLabel(row.aggregate_from)] = "true";
  }
  return role;
}

constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

template <typename Binding>
void AddSubject(Binding& binding, std::string_view kind, std::string_view name, std::string_view ns = "") {
  rbacv1::Subject& subject = *binding.add_subjects();
  subject.set_kind(std::string(kind));
  subject.set_name(std::string(name));
  if (kind != "ServiceAccount") subject.set_api_group(std::string(kRbacGroup));
  if (!ns.empty()) subject.set_namespace_(std::string(ns));
}

template <typename Binding>
void SetRole(Binding& binding, std::string_view kind, std::string_view name) {
  binding.mutable_role_ref()->set_api_group(std::string(kRbacGroup));
  binding.mutable_role_ref()->set_kind(std::string(kind));
  binding.mutable_role_ref()->set_name(std::string(name));
}

rbacv1::ClusterRoleBinding ClusterBinding(std::string_view role) {
  rbacv1::ClusterRoleBinding binding;
  SetMeta(*binding.mutable_metadata(), role);
  SetRole(binding, "ClusterRole", role);
  return binding;
}

}  // namespace

rbacv1::PolicyRule ToProto(const RuleRow& row) {
  rbacv1::PolicyRule rule;
  Split(row.verbs, *rule.mutable_verbs());
  if (!row.urls.empty()) {
    Split(row.urls, *rule.mutable_non_resource_urls());
    return rule;
  }
  Split(row.groups, *rule.mutable_api_groups());
  Split(row.resources, *rule.mutable_resources());
  if (!row.names.empty()) Split(row.names, *rule.mutable_resource_names());
  return rule;
}

bool GatesOn(std::string_view gates, const GateOn& on) {
  while (!gates.empty()) {
    const size_t plus = gates.find('+');
    if (!on(gates.substr(0, plus))) return false;
    gates = plus == std::string_view::npos ? std::string_view() : gates.substr(plus + 1);
  }
  return true;
}

std::vector<rbacv1::PolicyRule> NodeRules(const GateOn& on) {
  std::vector<rbacv1::PolicyRule> out;
  for (const RuleRow& row : NodeRuleRows()) {
    if (GatesOn(row.gates, on)) out.push_back(ToProto(row));
  }
  return out;
}

std::vector<rbacv1::ClusterRole> BootstrapClusterRoles(const GateOn& on) {
  std::vector<rbacv1::ClusterRole> out;
  for (const auto& rows : {UserRoles(), AccessRoles(), ComponentRoles(), OwnRoles()}) {
    for (const RoleRow& row : rows) {
      if (GatesOn(row.gates, on)) out.push_back(MakeRole(row, std::string(row.name), on));
    }
  }
  for (const RoleRow& row : ControllerRoles()) {
    if (GatesOn(row.gates, on)) {
      out.push_back(MakeRole(row, "system:controller:" + std::string(row.name), on));
    }
  }
  return out;
}

std::vector<rbacv1::ClusterRoleBinding> BootstrapClusterRoleBindings(const GateOn& on) {
  struct Row {
    std::string_view role, kind, subject, ns;
    std::string_view gates = {};
  };
  constexpr Row kRows[] = {
      {"cluster-admin", "Group", "system:masters", ""},
      {"system:monitoring", "Group", "system:monitoring", ""},
      {"system:discovery", "Group", "system:authenticated", ""},
      {"system:basic-user", "Group", "system:authenticated", ""},
      {"system:public-info-viewer", "Group", "system:authenticated", ""},
      {"system:public-info-viewer", "Group", "system:unauthenticated", ""},
      {"system:node-proxier", "User", "system:kube-proxy", ""},
      {"system:kube-controller-manager", "User", "system:kube-controller-manager", ""},
      {"system:kube-dns", "ServiceAccount", "kube-dns", "kube-system"},
      {"system:kube-scheduler", "User", "system:kube-scheduler", ""},
      {"system:volume-scheduler", "User", "system:kube-scheduler", ""},
      {"system:service-account-issuer-discovery", "Group", "system:serviceaccounts", ""},
      {"system:cluster-trust-bundle-discovery", "Group", "system:serviceaccounts", "", "ClusterTrustBundle"},
      {kOwnManagerRole, "User", "system:kube-controller-manager", ""},
      // The node authorizer grants nodes their permissions; the binding exists without subjects, as
      // upstream's.
      {"system:node", "", "", ""},
  };
  std::vector<rbacv1::ClusterRoleBinding> out;
  for (const Row& row : kRows) {
    if (!GatesOn(row.gates, on)) continue;
    if (out.empty() || out.back().role_ref().name() != row.role) out.push_back(ClusterBinding(row.role));
    if (!row.kind.empty()) AddSubject(out.back(), row.kind, row.subject, row.ns);
  }
  for (const RoleRow& row : ControllerRoles()) {
    if (!GatesOn(row.gates, on)) continue;
    out.push_back(ClusterBinding("system:controller:" + std::string(row.name)));
    AddSubject(out.back(), "ServiceAccount", row.name, "kube-system");
  }
  return out;
}

std::vector<rbacv1::Role> BootstrapRoles() {
  struct Row {
    std::string_view ns, name;
    std::vector<RuleRow> rules;
  };
  const std::vector<RuleRow> leader = {
      {"create,get,list,update,watch", "coordination.k8s.io", "leases", "", ""},
      {"create,get,list,update,watch", "coordination.k8s.io", "leasecandidates", "", ""}};
  const Row kRows[] = {
      {"kube-system",
       "extension-apiserver-authentication-reader",
       {{kRead, "", "configmaps", "extension-apiserver-authentication", ""}}},
      {"kube-system", "system:controller:bootstrap-signer", {{kRead, "", "secrets", "", ""}}},
      {"kube-system",
       "system:controller:cloud-provider",
       {{"create,get,list,watch", "", "configmaps", "", ""}}},
      {"kube-system",
       "system:controller:token-cleaner",
       {{"delete,get,list,watch", "", "secrets", "", ""}, EventsRule()}},
      {"kube-system", "system::leader-locking-kube-controller-manager", leader},
      {"kube-system", "system::leader-locking-kube-scheduler", leader},
      {"kube-public",
       "system:controller:bootstrap-signer",
       {{kRead, "", "configmaps", "", ""}, {"update", "", "configmaps", "cluster-info", ""}, EventsRule()}},
  };
  std::vector<rbacv1::Role> out;
  for (const Row& row : kRows) {
    rbacv1::Role& role = out.emplace_back();
    SetMeta(*role.mutable_metadata(), row.name, row.ns);
    for (const RuleRow& rule : row.rules) *role.add_rules() = ToProto(rule);
  }
  return out;
}

std::vector<rbacv1::RoleBinding> BootstrapRoleBindings() {
  // Subjects: users, and ServiceAccounts in kube-system; comma-separated lists.
  struct Row {
    std::string_view ns, name, role, users, accounts;
  };
  constexpr Row kRows[] = {
      {"kube-system", "system::extension-apiserver-authentication-reader",
       "extension-apiserver-authentication-reader", "system:kube-controller-manager,system:kube-scheduler",
       ""},
      {"kube-system", "system::leader-locking-kube-controller-manager", "", "system:kube-controller-manager",
       "kube-controller-manager,leader-election-controller"},
      {"kube-system", "system::leader-locking-kube-scheduler", "", "system:kube-scheduler", "kube-scheduler"},
      {"kube-system", "system:controller:bootstrap-signer", "", "", "bootstrap-signer"},
      {"kube-system", "system:controller:cloud-provider", "", "", "cloud-provider"},
      {"kube-system", "system:controller:token-cleaner", "", "", "token-cleaner"},
      {"kube-public", "system:controller:bootstrap-signer", "", "", "bootstrap-signer"},
  };
  std::vector<rbacv1::RoleBinding> out;
  for (const Row& row : kRows) {
    rbacv1::RoleBinding& binding = out.emplace_back();
    SetMeta(*binding.mutable_metadata(), row.name, row.ns);
    SetRole(binding, "Role", row.role.empty() ? row.name : row.role);
    google::protobuf::RepeatedPtrField<std::string> users, accounts;
    if (!row.users.empty()) Split(row.users, users);
    if (!row.accounts.empty()) Split(row.accounts, accounts);
    for (const std::string& user : users) AddSubject(binding, "User", user);
    for (const std::string& account : accounts) AddSubject(binding, "ServiceAccount", account, "kube-system");
  }
  return out;
}

}  // namespace keelson::apiserver
