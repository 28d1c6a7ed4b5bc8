#include "controlplane/apiserver/authz/bootstrap_policy.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kRead = "get,list,watch";
constexpr std::string_view kWrite = "create,delete,deletecollection,patch,update";
constexpr std::string_view kReadWrite = "create,delete,deletecollection,get,list,patch,update,watch";

// One rule of a table. `groups` is a comma-separated list in which nothing stands for the core group.
// A rule with `urls` has neither groups nor resources.
struct RuleRow {
  std::string_view verbs, groups, resources, names, urls;
};

struct RoleRow {
  std::string_view name;
  std::vector<RuleRow> rules;
  std::string_view aggregate_to;    // admin, edit, view: the role that takes these rules in
  std::string_view aggregate_from;  // the label's suffix that this role is made of
};

void Split(std::string_view text, google::protobuf::RepeatedPtrField<std::string>& out) {
  for (;;) {
    auto comma = text.find(',');
    out.Add(std::string(text.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

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

RuleRow Urls(std::string_view urls, std::string_view verbs = "get") { return {verbs, "", "", "", urls}; }
RuleRow EventsRule() { return {"create,patch,update", ",events.k8s.io", "events", "", ""}; }

void SetMeta(metav1::ObjectMeta& meta, std::string_view name, std::string_view ns = "") {
  meta.set_name(std::string(name));
  if (!ns.empty()) meta.set_namespace_(std::string(ns));
  (*meta.mutable_labels())["kubernetes.io/bootstrapping"] = "rbac-defaults";
  (*meta.mutable_annotations())["rbac.authorization.kubernetes.io/autoupdate"] = "true";
}

std::string AggregationLabel(std::string_view to) {
  return "rbac.authorization.k8s.io/aggregate-to-" + std::string(to);
}

const std::vector<RuleRow>& NodeRuleRows() {
  static const std::vector<RuleRow> rows = {
      {"create", "authentication.k8s.io", "tokenreviews", "", ""},
      {"create", "authorization.k8s.io", "localsubjectaccessreviews,subjectaccessreviews", "", ""},
      {kRead, "", "services", "", ""},
      {"create,get,list,watch", "", "nodes", "", ""},
      {"patch,update", "", "nodes/status", "", ""},
      {"patch,update", "", "nodes", "", ""},
      {"create,patch,update", ",events.k8s.io", "events", "", ""},
      {kRead, "", "pods", "", ""},
      {"create,delete", "", "pods", "", ""},
      {"patch,update", "", "pods/status", "", ""},
      {"create", "", "pods/eviction", "", ""},
      {kRead, "", "configmaps,secrets", "", ""},
      {"get", "", "persistentvolumeclaims,persistentvolumes", "", ""},
      {"get", "", "endpoints", "", ""},
      {"create,get,list,watch", "certificates.k8s.io", "certificatesigningrequests", "", ""},
      {"create,delete,get,patch,update", "coordination.k8s.io", "leases", "", ""},
      {"get", "storage.k8s.io", "volumeattachments", "", ""},
      {"get,patch,update", "", "persistentvolumeclaims/status", "", ""},
      {"create", "", "serviceaccounts/token", "", ""},
      {"get", "", "serviceaccounts", "", ""},
      {kRead, "storage.k8s.io", "csidrivers", "", ""},
      {"create,delete,get,patch,update", "storage.k8s.io", "csinodes", "", ""},
      {kRead, "node.k8s.io", "runtimeclasses", "", ""},
      {"get", "resource.k8s.io", "resourceclaims", "", ""},
      {"deletecollection,get,list,watch,create,update,patch,delete", "resource.k8s.io", "resourceslices", "",
       ""},
  };
  return rows;
}

std::vector<RoleRow> UserRoles() {
  constexpr std::string_view kAppsView =
      "controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,"
      "replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status";
  constexpr std::string_view kAppsEdit =
      "daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/"
      "scale,statefulsets,"
      "statefulsets/scale";
  return {
      {"cluster-admin", {{"*", "*", "*", "", ""}, Urls("*", "*")}, "", ""},
      {"admin", {}, "", "admin"},
      {"edit", {}, "admin", "edit"},
      {"view", {}, "edit", "view"},
      {"system:aggregate-to-admin",
       {{"create", "authorization.k8s.io", "localsubjectaccessreviews", "", ""},
        {kReadWrite, "rbac.authorization.k8s.io", "rolebindings,roles", "", ""}},
       "admin",
       ""},
      {"system:aggregate-to-edit",
       {{kRead, "", "pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy", "", ""},
        {"impersonate", "", "serviceaccounts", "", ""},
        {kWrite, "", "pods,pods/attach,pods/exec,pods/portforward,pods/proxy", "", ""},
        {"create", "", "pods/eviction", "", ""},
        {kWrite, "",
         "configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/"
         "scale,secrets,"
         "serviceaccounts,services,services/proxy",
         "", ""},
        {"create", "", "serviceaccounts/token", "", ""},
        {kWrite, "apps", kAppsEdit, "", ""},
        {kWrite, "autoscaling", "horizontalpodautoscalers", "", ""},
        {kWrite, "batch", "cronjobs,jobs", "", ""},
        {kWrite, "policy", "poddisruptionbudgets", "", ""},
        {kWrite, "networking.k8s.io", "ingresses,networkpolicies", "", ""},
        {"create,delete,deletecollection,get,list,patch,update,watch", "coordination.k8s.io", "leases", "",
         ""}},
       "edit",
       ""},
      {"system:aggregate-to-view",
       {{kRead, "",
         "configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/"
         "status,pods,replicationcontrollers,"
         "replicationcontrollers/scale,serviceaccounts,services,services/status",
         "", ""},
        {kRead, "",
         "bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,"
         "resourcequotas,resourcequotas/status",
         "", ""},
        {kRead, "", "namespaces", "", ""},
        {kRead, "discovery.k8s.io", "endpointslices", "", ""},
        {kRead, "apps", kAppsView, "", ""},
        {kRead, "autoscaling", "horizontalpodautoscalers,horizontalpodautoscalers/status", "", ""},
        {kRead, "batch", "cronjobs,cronjobs/status,jobs,jobs/status", "", ""},
        {kRead, "policy", "poddisruptionbudgets,poddisruptionbudgets/status", "", ""},
        {kRead, "networking.k8s.io", "ingresses,ingresses/status,networkpolicies", "", ""}},
       "view",
       ""},
  };
}

std::vector<RoleRow> AccessRoles() {
  return {
      {"system:discovery",
       {Urls("/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/")},
       "",
       ""},
      {"system:public-info-viewer", {Urls("/healthz,/livez,/readyz,/version,/version/")}, "", ""},
      {"system:basic-user",
       {{"create", "authorization.k8s.io", "selfsubjectaccessreviews,selfsubjectrulesreviews", "", ""},
        {"create", "authentication.k8s.io", "selfsubjectreviews", "", ""}},
       "",
       ""},
      {"system:monitoring",
       {Urls("/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*")},
       "",
       ""},
      {"system:service-account-issuer-discovery",
       {Urls("/.well-known/openid-configuration,/openid/v1/jwks")},
       "",
       ""},
      {"system:auth-delegator",
       {{"create", "authentication.k8s.io", "tokenreviews", "", ""},
        {"create", "authorization.k8s.io", "subjectaccessreviews", "", ""}},
       "",
       ""},
      {"system:kubelet-api-admin",
       {{kRead, "", "nodes", "", ""},
        {"proxy", "", "nodes", "", ""},
        {"*", "",
         "nodes/checkpoint,nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,nodes/"
         "stats",
         "", ""}},
       "",
       ""},
      {"system:node-bootstrapper",
       {{"create,get,list,watch", "certificates.k8s.io", "certificatesigningrequests", "", ""}},
       "",
       ""},
      {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
       {{"create", "certificates.k8s.io", "certificatesigningrequests/nodeclient", "", ""}},
       "",
       ""},
      {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       {{"create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient", "", ""}},
       "",
       ""},
      {"system:certificates.k8s.io:kube-apiserver-client-approver",
       {{"approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client", ""}},
       "",
       ""},
      {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
       {{"approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet", ""}},
       "",
       ""},
      {"system:certificates.k8s.io:kubelet-serving-approver",
       {{"approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving", ""}},
       "",
       ""},
      {"system:persistent-volume-provisioner",
       {{"create,delete,get,list,watch", "", "persistentvolumes", "", ""},
        {"get,list,update,watch", "", "persistentvolumeclaims", "", ""},
        {kRead, "storage.k8s.io", "storageclasses", "", ""},
        {"watch", "", "events", "", ""},
        EventsRule()},
       "",
       ""},
      {"system:kube-dns", {{"list,watch", "", "endpoints,services", "", ""}}, "", ""},
  };
}

std::vector<RoleRow> ComponentRoles() {
  return {
      {"system:node", NodeRuleRows(), "", ""},
      {"system:node-proxier",
       {{"list,watch", "", "endpoints,services", "", ""},
        {kRead, "", "nodes", "", ""},
        EventsRule(),
        {"list,watch", "networking.k8s.io", "servicecidrs", "", ""},
        {"list,watch", "discovery.k8s.io", "endpointslices", "", ""}},
       "",
       ""},
      {"system:kube-scheduler",
       {EventsRule(),
        {"create", "coordination.k8s.io", "leases", "", ""},
        {"get,list,update,watch", "coordination.k8s.io", "leases", "kube-scheduler", ""},
        {kRead, "", "nodes", "", ""},
        {"delete,get,list,watch", "", "pods", "", ""},
        {"create", "", "bindings,pods/binding", "", ""},
        {"patch,update", "", "pods/status", "", ""},
        {kRead, "", "replicationcontrollers,services", "", ""},
        {kRead, "apps", "replicasets,statefulsets", "", ""},
        {kRead, "policy", "poddisruptionbudgets", "", ""},
        {kRead, "", "namespaces,persistentvolumeclaims,persistentvolumes", "", ""},
        {"create", "authentication.k8s.io", "tokenreviews", "", ""},
        {"create", "authorization.k8s.io", "subjectaccessreviews", "", ""},
        {kRead, "storage.k8s.io", "csidrivers,csinodes,csistoragecapacities,storageclasses,volumeattachments",
         "", ""},
        {kRead, "scheduling.k8s.io", "priorityclasses", "", ""},
        {kRead, "resource.k8s.io", "deviceclasses,resourceclaims,resourceslices", "", ""},
        {"patch,update", "resource.k8s.io", "resourceclaims,resourceclaims/status", "", ""}},
       "",
       ""},
      {"system:volume-scheduler",
       {{"get,list,patch,update,watch", "", "persistentvolumes", "", ""},
        {kRead, "storage.k8s.io", "storageclasses", "", ""},
        {"get,list,patch,update,watch", "", "persistentvolumeclaims", "", ""}},
       "",
       ""},
      {"system:kube-controller-manager",
       {EventsRule(),
        {"create", "coordination.k8s.io", "leases", "", ""},
        {"get,list,update,watch", "coordination.k8s.io", "leases", "kube-controller-manager", ""},
        {"create", "", "secrets,serviceaccounts", "", ""},
        {"delete", "", "secrets", "", ""},
        {"get", "", "configmaps,namespaces,secrets,serviceaccounts", "", ""},
        {"update", "", "secrets,serviceaccounts", "", ""},
        {"create", "authentication.k8s.io", "tokenreviews", "", ""},
        {"create", "authorization.k8s.io", "subjectaccessreviews", "", ""},
        {"list,watch", "*", "*", "", ""},
        {"create", "", "serviceaccounts/token", "", ""}},
       "",
       ""},
  };
}

// system:controller:NAME, bound to the ServiceAccount kube-system/NAME for upstream's controller manager, and
// to the user system:kube-controller-manager, as which our controllers run.
std::vector<RoleRow> ControllerRoles() {
  return {
      {"namespace-controller",
       {{"delete,get,list,watch", "", "namespaces", "", ""},
        {"update", "", "namespaces/finalize,namespaces/status", "", ""},
        {"delete,deletecollection,get,list", "*", "*", "", ""}},
       "",
       ""},
      {"generic-garbage-collector",
       {{"delete,get,list,patch,update,watch", "*", "*", "", ""}, EventsRule()},
       "",
       ""},
      {"service-account-controller", {{"create", "", "serviceaccounts", "", ""}, EventsRule()}, "", ""},
      {"root-ca-cert-publisher", {{"create,update", "", "configmaps", "", ""}, EventsRule()}, "", ""},
      {"deployment-controller",
       {{"get,list,update,watch", "apps", "deployments", "", ""},
        {"update", "apps", "deployments/finalizers,deployments/status", "", ""},
        {"create,delete,get,list,patch,update,watch", "apps", "replicasets", "", ""},
        {"get,list,update,watch", "", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"replicaset-controller",
       {{"get,list,update,watch", "apps", "replicasets", "", ""},
        {"update", "apps", "replicasets/finalizers,replicasets/status", "", ""},
        {"create,delete,list,patch,watch", "", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"replication-controller",
       {{"get,list,update,watch", "", "replicationcontrollers", "", ""},
        {"update", "", "replicationcontrollers/finalizers,replicationcontrollers/status", "", ""},
        {"create,delete,list,patch,watch", "", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"statefulset-controller",
       {{kRead, "apps", "statefulsets", "", ""},
        {"update", "apps", "statefulsets/finalizers,statefulsets/status", "", ""},
        {"create,delete,get,patch,update", "", "pods", "", ""},
        {"create,delete,get,list,patch,update,watch", "apps", "controllerrevisions", "", ""},
        {"create,delete,get,update", "", "persistentvolumeclaims", "", ""},
        EventsRule()},
       "",
       ""},
      {"daemon-set-controller",
       {{kRead, "apps", "daemonsets", "", ""},
        {"update", "apps", "daemonsets/finalizers,daemonsets/status", "", ""},
        {"list,watch", "", "nodes", "", ""},
        {"create,delete,list,patch,watch", "", "pods", "", ""},
        {"create", "", "pods/binding", "", ""},
        {"create,delete,get,list,patch,update,watch", "apps", "controllerrevisions", "", ""},
        EventsRule()},
       "",
       ""},
      {"job-controller",
       {{"get,list,patch,update,watch", "batch", "jobs", "", ""},
        {"update", "batch", "jobs/finalizers,jobs/status", "", ""},
        {"create,delete,list,patch,watch", "", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"cronjob-controller",
       {{"get,list,update,watch", "batch", "cronjobs", "", ""},
        {"create,delete,get,list,patch,update,watch", "batch", "jobs", "", ""},
        {"update", "batch", "cronjobs/finalizers,cronjobs/status", "", ""},
        {"delete,list", "", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"node-controller",
       {{"delete,get,list,patch,update", "", "nodes", "", ""},
        {"patch,update", "", "nodes/status", "", ""},
        {"patch,update", "", "pods/status", "", ""},
        {"delete,get,list", "", "pods", "", ""},
        {kRead, "coordination.k8s.io", "leases", "", ""},
        EventsRule()},
       "",
       ""},
      {"pod-garbage-collector",
       {{"delete,list,watch", "", "pods", "", ""},
        {"get,list", "", "nodes", "", ""},
        {"patch", "", "pods/status", "", ""}},
       "",
       ""},
      {"endpoint-controller",
       {{kRead, "", "pods,services", "", ""},
        {"create,delete,get,list,update", "", "endpoints", "", ""},
        {"create", "", "endpoints/restricted", "", ""},
        EventsRule()},
       "",
       ""},
      {"endpointslice-controller",
       {{kRead, "", "nodes,pods,services", "", ""},
        {"update", "", "services/finalizers", "", ""},
        {"create,delete,get,list,update", "discovery.k8s.io", "endpointslices", "", ""},
        {"create", "discovery.k8s.io", "endpointslices/restricted", "", ""},
        EventsRule()},
       "",
       ""},
      {"endpointslicemirroring-controller",
       {{kRead, "", "endpoints,services", "", ""},
        {"create,delete,get,list,update", "discovery.k8s.io", "endpointslices", "", ""},
        {"create", "discovery.k8s.io", "endpointslices/restricted", "", ""},
        EventsRule()},
       "",
       ""},
      {"disruption-controller",
       {{kRead, "apps", "deployments,replicasets,statefulsets", "", ""},
        {kRead, "", "replicationcontrollers", "", ""},
        {kRead, "policy", "poddisruptionbudgets", "", ""},
        {"update", "policy", "poddisruptionbudgets/status", "", ""},
        {"patch", "", "pods/status", "", ""},
        {"get", "*", "*/scale", "", ""},
        EventsRule()},
       "",
       ""},
      {"horizontal-pod-autoscaler",
       {{kRead, "autoscaling", "horizontalpodautoscalers", "", ""},
        {"update", "autoscaling", "horizontalpodautoscalers/status", "", ""},
        {"get,update", "*", "*/scale", "", ""},
        {"list", "", "pods", "", ""},
        {"list", "metrics.k8s.io", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"certificate-controller",
       {{"delete,get,list,watch", "certificates.k8s.io", "certificatesigningrequests", "", ""},
        {"update", "certificates.k8s.io",
         "certificatesigningrequests/approval,certificatesigningrequests/status", "", ""},
        {"approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet", ""},
        {"sign", "certificates.k8s.io", "signers",
         "kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,"
         "kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown",
         ""},
        {"create", "authorization.k8s.io", "subjectaccessreviews", "", ""},
        EventsRule()},
       "",
       ""},
      {"persistent-volume-binder",
       {{"create,delete,get,list,update,watch", "", "persistentvolumes", "", ""},
        {"update", "", "persistentvolumeclaims/status,persistentvolumes/status", "", ""},
        {"get,list,update,watch", "", "persistentvolumeclaims", "", ""},
        {"create,delete,get,list,watch", "", "pods", "", ""},
        {kRead, "storage.k8s.io", "storageclasses", "", ""},
        {"get,list", "", "nodes", "", ""},
        EventsRule()},
       "",
       ""},
      {"attachdetach-controller",
       {{"list,watch", "", "persistentvolumeclaims,persistentvolumes", "", ""},
        {kRead, "", "nodes", "", ""},
        {"patch,update", "", "nodes/status", "", ""},
        {"list,watch", "", "pods", "", ""},
        {"create,delete,get,list,watch", "storage.k8s.io", "volumeattachments", "", ""},
        {kRead, "storage.k8s.io", "csidrivers,csinodes", "", ""},
        EventsRule()},
       "",
       ""},
      {"expand-controller",
       {{"get,list,patch,update,watch", "", "persistentvolumes", "", ""},
        {"patch,update", "", "persistentvolumeclaims/status", "", ""},
        {kRead, "", "persistentvolumeclaims", "", ""},
        {kRead, "storage.k8s.io", "storageclasses", "", ""},
        EventsRule()},
       "",
       ""},
      {"pv-protection-controller",
       {{"get,list,update,watch", "", "persistentvolumes", "", ""}, EventsRule()},
       "",
       ""},
      {"pvc-protection-controller",
       {{"get,list,update,watch", "", "persistentvolumeclaims", "", ""},
        {kRead, "", "pods", "", ""},
        EventsRule()},
       "",
       ""},
      {"ephemeral-volume-controller",
       {{"update", "", "pods/finalizers", "", ""},
        {kRead, "", "pods", "", ""},
        {"create,get,list,watch", "", "persistentvolumeclaims", "", ""},
        EventsRule()},
       "",
       ""},
      {"resourcequota-controller",
       {{"list,watch", "*", "*", "", ""}, {"update", "", "resourcequotas/status", "", ""}, EventsRule()},
       "",
       ""},
      {"ttl-after-finished-controller",
       {{"delete,get,list,watch", "batch", "jobs", "", ""}, EventsRule()},
       "",
       ""},
  };
}

rbacv1::ClusterRole MakeRole(const RoleRow& row, const std::string& name) {
  rbacv1::ClusterRole role;
  SetMeta(*role.mutable_metadata(), name);
  for (const RuleRow& rule : row.rules) *role.add_rules() = ToProto(rule);
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

std::vector<rbacv1::PolicyRule> NodeRules() {
  std::vector<rbacv1::PolicyRule> out;
  for (const RuleRow& row : NodeRuleRows()) out.push_back(ToProto(row));
  return out;
}

std::vector<rbacv1::ClusterRole> BootstrapClusterRoles() {
  std::vector<rbacv1::ClusterRole> out;
  for (const auto& rows : {UserRoles(), AccessRoles(), ComponentRoles()}) {
    for (const RoleRow& row : rows) out.push_back(MakeRole(row, std::string(row.name)));
  }
  for (const RoleRow& row : ControllerRoles())
    out.push_back(MakeRole(row, "system:controller:" + std::string(row.name)));
  return out;
}

std::vector<rbacv1::ClusterRoleBinding> BootstrapClusterRoleBindings() {
  struct Row {
    std::string_view role, kind, subject, ns;
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
      // Nodes get their rights from the node authorizer; the binding is there, and empty, as upstream has it.
      {"system:node", "", "", ""},
  };
  std::vector<rbacv1::ClusterRoleBinding> out;
  for (const Row& row : kRows) {
    if (out.empty() || out.back().role_ref().name() != row.role) out.push_back(ClusterBinding(row.role));
    if (!row.kind.empty()) AddSubject(out.back(), row.kind, row.subject, row.ns);
  }
  for (const RoleRow& row : ControllerRoles()) {
    out.push_back(ClusterBinding("system:controller:" + std::string(row.name)));
    AddSubject(out.back(), "ServiceAccount", row.name, "kube-system");
    AddSubject(out.back(), "User", "system:kube-controller-manager");
  }
  return out;
}

std::vector<rbacv1::Role> BootstrapRoles() {
  struct Row {
    std::string_view ns, name;
    RuleRow rule;
  };
  const Row kRows[] = {
      {"kube-system",
       "extension-apiserver-authentication-reader",
       {kRead, "", "configmaps", "extension-apiserver-authentication", ""}},
      {"kube-system", "system:controller:token-cleaner", {"delete,get,list,watch", "", "secrets", "", ""}},
      {"kube-system",
       "system::leader-locking-kube-controller-manager",
       {"get,update,watch", "", "configmaps", "kube-controller-manager", ""}},
      {"kube-system",
       "system::leader-locking-kube-scheduler",
       {"get,update,watch", "", "configmaps", "kube-scheduler", ""}},
      {"kube-public", "system:controller:bootstrap-signer", {"get,list,watch", "", "configmaps", "", ""}},
  };
  std::vector<rbacv1::Role> out;
  for (const Row& row : kRows) {
    rbacv1::Role& role = out.emplace_back();
    SetMeta(*role.mutable_metadata(), row.name, row.ns);
    *role.add_rules() = ToProto(row.rule);
  }
  return out;
}

std::vector<rbacv1::RoleBinding> BootstrapRoleBindings() {
  struct Row {
    std::string_view name, role, kind, subject;
  };
  constexpr Row kRows[] = {
      {"system::extension-apiserver-authentication-reader", "extension-apiserver-authentication-reader",
       "User", "system:kube-controller-manager"},
      {"system::leader-locking-kube-controller-manager", "system::leader-locking-kube-controller-manager",
       "User", "system:kube-controller-manager"},
      {"system::leader-locking-kube-scheduler", "system::leader-locking-kube-scheduler", "User",
       "system:kube-scheduler"},
  };
  std::vector<rbacv1::RoleBinding> out;
  for (const Row& row : kRows) {
    rbacv1::RoleBinding& binding = out.emplace_back();
    SetMeta(*binding.mutable_metadata(), row.name, "kube-system");
    SetRole(binding, "Role", row.role);
    AddSubject(binding, row.kind, row.subject);
  }
  AddSubject(out[0], "User", "system:kube-scheduler");
  return out;
}

}  // namespace keelson::apiserver
