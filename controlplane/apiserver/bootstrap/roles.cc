#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kAutoupdate = "rbac.authorization.kubernetes.io/autoupdate";

// Appends the items of `wanted` that `have` lacks; whether there were any.
template <typename T>
bool AddMissing(const google::protobuf::RepeatedPtrField<T>& wanted,
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

bool AddMissing(const metav1::ObjectMeta& wanted, metav1::ObjectMeta& have) {
  bool added = false;
  for (const auto& label : wanted.labels()) {
    if (have.labels().contains(label.first)) continue;
    (*have.mutable_labels())[label.first] = label.second;
    added = true;
  }
  return added;
}

bool MergeRole(const rbacv1::ClusterRole& wanted, rbacv1::ClusterRole& have) {
  bool changed = AddMissing(wanted.metadata(), *have.mutable_metadata());
  if (wanted.has_aggregation_rule()) {
    if (!have.has_aggregation_rule()) {
      *have.mutable_aggregation_rule() = wanted.aggregation_rule();
      changed = true;
    }
    return changed;
  }
  return AddMissing(wanted.rules(), *have.mutable_rules()) || changed;
}
bool MergeRole(const rbacv1::Role& wanted, rbacv1::Role& have) {
  bool changed = AddMissing(wanted.metadata(), *have.mutable_metadata());
  return AddMissing(wanted.rules(), *have.mutable_rules()) || changed;
}
template <typename Binding>
bool MergeBinding(const Binding& wanted, Binding& have) {
  bool changed = AddMissing(wanted.metadata(), *have.mutable_metadata());
  return AddMissing(wanted.subjects(), *have.mutable_subjects()) || changed;
}
bool MergeRole(const rbacv1::ClusterRoleBinding& wanted, rbacv1::ClusterRoleBinding& have) {
  return MergeBinding(wanted, have);
}
bool MergeRole(const rbacv1::RoleBinding& wanted, rbacv1::RoleBinding& have) {
  return MergeBinding(wanted, have);
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
  if (!MergeRole(wanted, have)) return {};
  auto updated = registry.Modify(
      info, meta.namespace_(), meta.name(),
      [&](api::Message& object) -> Result<> {
        MergeRole(wanted, static_cast<T&>(object));
        return {};
      },
      BootstrapWrite(stop));
  if (!updated) return updated.error().Wrap("update " + std::string(info.resource) + " " + meta.name());
  log::Info("Bootstrap policy completed", {{"resource", info.resource}, {"name", meta.name()}});
  return {};
}

}  // namespace

Result<> EnsureBootstrapRoles(registry::Registry& registry, std::stop_token stop) {
  for (const auto& role : BootstrapClusterRoles()) RETURN_IF_ERROR(Ensure(registry, role, stop));
  for (const auto& binding : BootstrapClusterRoleBindings()) RETURN_IF_ERROR(Ensure(registry, binding, stop));
  for (const auto& role : BootstrapRoles()) RETURN_IF_ERROR(Ensure(registry, role, stop));
  for (const auto& binding : BootstrapRoleBindings()) RETURN_IF_ERROR(Ensure(registry, binding, stop));
  return {};
}

}  // namespace keelson::apiserver
