// Grants that earlier versions added to upstream's roles and bindings. Upstream's API servers only add
// missing grants, so without this code they would stay forever.
#include <algorithm>

#include "controlplane/apiserver/authz/policy_tables.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

struct RetiredRule {
  std::string_view ns, role;  // empty: a ClusterRole
  RuleRow rule;
};

const std::vector<RetiredRule>& RetiredRules() {
  static const std::vector<RetiredRule> rules = {
      {"", "system:kube-scheduler", {kRead, "storage.k8s.io", "storageclasses,volumeattachments", "", ""}},
      {"", "system:kube-scheduler", {kRead, "scheduling.k8s.io", "priorityclasses", "", ""}},
      {"",
       "system:kube-controller-manager",
       {"get,list,update,watch", "coordination.k8s.io", "leases", "kube-controller-manager", ""}},
      {"",
       "system:kubelet-api-admin",
       {"*", "",
        "nodes/checkpoint,nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,"
        "nodes/stats",
        "", ""}},
      {"",
       "system:node",
       {"create,get,list,watch", "certificates.k8s.io", "podcertificaterequests", "", "",
        "PodCertificateRequest"}},
      {"",
       "system:node",
       {"create,delete,get,list,patch,update,watch", "resource.k8s.io", "resourceslices", "", ""}},
      {"", "system:controller:expand-controller", {"get", "", "services", "", ""}},
      {"", "system:controller:persistent-volume-binder", {"get", "", "services", "", ""}},
      {"",
       "system:controller:device-taint-eviction-controller",
       {kRead, "resource.k8s.io", "devicetaintrules", "", "", "DRADeviceTaintRules"}},
      {"kube-system", "system::leader-locking-kube-controller-manager", {"watch", "", "configmaps", "", ""}},
      {"kube-system",
       "system::leader-locking-kube-controller-manager",
       {"get,update", "", "configmaps", "kube-controller-manager", ""}},
      {"kube-system", "system::leader-locking-kube-scheduler", {"watch", "", "configmaps", "", ""}},
      {"kube-system",
       "system::leader-locking-kube-scheduler",
       {"get,update", "", "configmaps", "kube-scheduler", ""}},
  };
  return rules;
}

constexpr std::string_view kRetiredRole = "system:aggregated-metrics-reader";

// True for an object created at bootstrap with autoupdate on.
bool IsOurs(const metav1::ObjectMeta& meta) {
  const auto label = meta.labels().find("kubernetes.io/bootstrapping");
  if (label == meta.labels().end() || label->second != "rbac-defaults") return false;
  const auto autoupdate = meta.annotations().find(kAutoupdate);
  return autoupdate == meta.annotations().end() || autoupdate->second != "false";
}

// Removes the items that equal `wanted`.
template <typename T>
bool Erase(google::protobuf::RepeatedPtrField<T>& items, const T& wanted) {
  const std::string bytes = api::EncodeRaw(wanted);
  const auto end = std::remove_if(items.begin(), items.end(),
                                  [&](const T& item) { return api::EncodeRaw(item) == bytes; });
  const bool found = end != items.end();
  items.erase(end, items.end());
  return found;
}

// `erase` changes the object, and returns whether it did.
template <typename T>
Result<> Clean(registry::Registry& registry, std::string_view ns, const std::string& name,
               std::stop_token stop, const std::function<bool(T&)>& erase) {
  const api::ResourceInfo& info = api::ResourceOf<T>();
  Result<registry::ObjectPtr> found = registry.Get(info, ns, name, "", stop);
  if (!found) return found.error().Is(Code::kNotFound) ? Result<>() : Result<>(found.error());
  T have = static_cast<const T&>(*(*found)->Decode());
  if (!IsOurs(have.metadata()) || !erase(have)) return {};
  auto updated = registry.Modify(
      info, ns, name,
      [&](api::Message& object) -> Result<> {
        erase(static_cast<T&>(object));
        return {};
      },
      BootstrapWrite(stop));
  if (!updated && !updated.error().Is(Code::kNotFound)) {
    return updated.error().Wrap("clean " + std::string(info.resource) + " " + name);
  }
  log::Info("Grants of an earlier version removed", {{"resource", info.resource}, {"name", name}});
  return {};
}

// Upstream's metrics-server has a role of the same name, without the label.
Result<> DeleteRetiredRole(registry::Registry& registry, std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<rbacv1::ClusterRole>();
  Result<registry::ObjectPtr> found = registry.Get(info, "", kRetiredRole, "", stop);
  if (!found) return found.error().Is(Code::kNotFound) ? Result<>() : Result<>(found.error());
  const auto object = (*found)->Decode();
  const auto& role = static_cast<const rbacv1::ClusterRole&>(*object);
  const rbacv1::PolicyRule rule = ToProto({kRead, "metrics.k8s.io", "nodes,pods", "", ""});
  if (!IsOurs(role.metadata()) || role.rules_size() != 1 ||
      api::EncodeRaw(role.rules(0)) != api::EncodeRaw(rule)) {
    return {};
  }
  metav1::DeleteOptions same;
  same.mutable_preconditions()->set_uid(role.metadata().uid());
  auto deleted = registry.Delete(info, "", kRetiredRole, same, BootstrapWrite(stop));
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error();
  return {};
}

}  // namespace

Result<> RemoveRetiredGrants(registry::Registry& registry, const GateOn& on, std::stop_token stop) {
  for (const RetiredRule& retired : RetiredRules()) {
    if (!retired.rule.gates.empty() && GatesOn(retired.rule.gates, on)) continue;
    const auto erase = [rule = ToProto(retired.rule)](auto& role) {
      return Erase(*role.mutable_rules(), rule);
    };
    const std::string name(retired.role);
    KEELSON_RETURN_IF_ERROR(retired.ns.empty()
                                ? Clean<rbacv1::ClusterRole>(registry, "", name, stop, erase)
                                : Clean<rbacv1::Role>(registry, retired.ns, name, stop, erase));
  }
  rbacv1::Subject manager;
  manager.set_kind("User");
  manager.set_api_group("rbac.authorization.k8s.io");
  manager.set_name("system:kube-controller-manager");
  for (const RoleRow& row : ControllerRoles()) {
    KEELSON_RETURN_IF_ERROR(Clean<rbacv1::ClusterRoleBinding>(
        registry, "", "system:controller:" + std::string(row.name), stop,
        [&](rbacv1::ClusterRoleBinding& binding) { return Erase(*binding.mutable_subjects(), manager); }));
  }
  return DeleteRetiredRole(registry, stop);
}

}  // namespace keelson::apiserver
