#include <algorithm>

#include "controlplane/apiserver/authz/policy_tables.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "controlplane/apiserver/authz/rule_coverage.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

// Adds missing entries; keeps users' changes.
template <typename Map>
bool AddMissing(const Map& wanted, Map& have) {
  bool added = false;
  for (const auto& entry : wanted) {
    if (have.contains(entry.first)) continue;
    have[entry.first] = entry.second;
    added = true;
  }
  return added;
}

bool MergeMeta(const metav1::ObjectMeta& wanted, metav1::ObjectMeta& have) {
  bool labels = AddMissing(wanted.labels(), *have.mutable_labels());
  return AddMissing(wanted.annotations(), *have.mutable_annotations()) || labels;
}

// Appends missing messages, compared by their bytes.
template <typename T>
bool AppendMissing(const google::protobuf::RepeatedPtrField<T>& wanted,
                   google::protobuf::RepeatedPtrField<T>& have) {
  bool added = false;
  for (const T& item : wanted) {
    std::string bytes = api::EncodeRaw(item);
    bool found =
        std::any_of(have.begin(), have.end(), [&](const T& one) { return api::EncodeRaw(one) == bytes; });
    if (found) continue;
    *have.Add() = item;
    added = true;
  }
  return added;
}

// A rule is missing if the existing rules do not cover it.
using Rules = google::protobuf::RepeatedPtrField<rbacv1::PolicyRule>;
bool AppendMissingRules(const Rules& wanted, Rules& have) {
  std::vector<PolicyRule> existing;
  for (const rbacv1::PolicyRule& rule : have) existing.push_back(ToRule(rule));
  bool added = false;
  for (const rbacv1::PolicyRule& rule : wanted) {
    if (Uncovered(existing, {ToRule(rule)}).empty()) continue;
    *have.Add() = rule;
    added = true;
  }
  return added;
}

bool Merge(const rbacv1::ClusterRole& wanted, rbacv1::ClusterRole& have) {
  bool changed = MergeMeta(wanted.metadata(), *have.mutable_metadata());
  // The rules of an aggregated role come from other roles.
  if (!wanted.has_aggregation_rule()) {
    return AppendMissingRules(wanted.rules(), *have.mutable_rules()) || changed;
  }
  return AppendMissing(wanted.aggregation_rule().cluster_role_selectors(),
                       *have.mutable_aggregation_rule()->mutable_cluster_role_selectors()) ||
         changed;
}
bool Merge(const rbacv1::Role& wanted, rbacv1::Role& have) {
  bool changed = MergeMeta(wanted.metadata(), *have.mutable_metadata());
  return AppendMissingRules(wanted.rules(), *have.mutable_rules()) || changed;
}
template <typename Binding>
bool Merge(const Binding& wanted, Binding& have) {
  bool changed = MergeMeta(wanted.metadata(), *have.mutable_metadata());
  return AppendMissing(wanted.subjects(), *have.mutable_subjects()) || changed;
}

// roleRef is immutable: delete a binding with another roleRef first.
template <typename Role>
bool RefersElsewhere(const Role&, const Role&) {
  return false;
}
template <typename Binding>
bool OtherRole(const Binding& wanted, const Binding& have) {
  return wanted.role_ref().kind() != have.role_ref().kind() ||
         wanted.role_ref().name() != have.role_ref().name();
}
bool RefersElsewhere(const rbacv1::ClusterRoleBinding& wanted, const rbacv1::ClusterRoleBinding& have) {
  return OtherRole(wanted, have);
}
bool RefersElsewhere(const rbacv1::RoleBinding& wanted, const rbacv1::RoleBinding& have) {
  return OtherRole(wanted, have);
}

template <typename T>
Result<> Replace(registry::Registry& registry, const T& wanted, const T& have, std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<T>();
  const metav1::ObjectMeta& meta = have.metadata();
  metav1::DeleteOptions same;
  same.mutable_preconditions()->set_uid(meta.uid());
  auto deleted = registry.Delete(info, meta.namespace_(), meta.name(), same, BootstrapWrite(stop));
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error();
  return CreateIfAbsent(registry, wanted, stop);
}

template <typename T>
Result<> Ensure(registry::Registry& registry, const T& wanted, std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<T>();
  const metav1::ObjectMeta& meta = wanted.metadata();
  Result<registry::ObjectPtr> found = registry.Get(info, meta.namespace_(), meta.name(), "", stop);
  if (!found && !found.error().Is(Code::kNotFound)) return found.error();
  if (!found) return CreateIfAbsent(registry, wanted, stop);
  T have = static_cast<const T&>(*(*found)->Decode());
  auto autoupdate = have.metadata().annotations().find(kAutoupdate);
  if (autoupdate != have.metadata().annotations().end() && autoupdate->second == "false") return {};
  if (RefersElsewhere(wanted, have)) return Replace(registry, wanted, have, stop);
  if (!Merge(wanted, have)) return {};
  auto updated = registry.Modify(
      info, meta.namespace_(), meta.name(),
      [&](api::Message& object) -> Result<> {
        Merge(wanted, static_cast<T&>(object));
        return {};
      },
      BootstrapWrite(stop));
  if (!updated) return updated.error().Wrap("update " + std::string(info.resource) + " " + meta.name());
  log::Info("Bootstrap policy completed", {{"resource", info.resource}, {"name", meta.name()}});
  return {};
}

}  // namespace

Result<> EnsureBootstrapRoles(registry::Registry& registry, const GateOn& on, std::stop_token stop) {
  Result<registry::ObjectPtr> own =
      registry.Get(api::ResourceOf<rbacv1::ClusterRole>(), "", kOwnManagerRole, "", stop);
  if (!own && !own.error().Is(Code::kNotFound)) return own.error();
  if (!own) KEELSON_RETURN_IF_ERROR(RemoveRetiredGrants(registry, on, stop));
  for (const auto& role : BootstrapClusterRoles(on)) KEELSON_RETURN_IF_ERROR(Ensure(registry, role, stop));
  for (const auto& binding : BootstrapClusterRoleBindings(on)) {
    KEELSON_RETURN_IF_ERROR(Ensure(registry, binding, stop));
  }
  for (const auto& role : BootstrapRoles()) KEELSON_RETURN_IF_ERROR(Ensure(registry, role, stop));
  for (const auto& binding : BootstrapRoleBindings()) {
    KEELSON_RETURN_IF_ERROR(Ensure(registry, binding, stop));
  }
  return {};
}

}  // namespace keelson::apiserver
