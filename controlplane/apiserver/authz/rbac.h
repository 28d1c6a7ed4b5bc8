// Role-based access control on an index of roles and bindings, updated from the watch caches. A decision
// needs the bindings of the user and its groups only, regardless of the cluster's size.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

PolicyRule ToRule(const rbacv1::PolicyRule& rule);

class RbacAuthorizer : public Authorizer {  // thread safe
 public:
  Decision Authorize(const Attributes& attributes) const override;
  UserRules RulesFor(const User& user, std::string_view ns) const override;
  // The rules of a role; null: no such role. `ns` empty: a ClusterRole.
  std::shared_ptr<const std::vector<PolicyRule>> RulesOf(std::string_view ns, std::string_view role) const;

  // Updates of the index. Keys are "namespace/name" or "name".
  void Put(const rbacv1::ClusterRole& role);
  void Put(const rbacv1::Role& role);
  void Put(const rbacv1::ClusterRoleBinding& binding);
  void Put(const rbacv1::RoleBinding& binding);
  void RemoveRole(std::string_view key);
  void RemoveBinding(std::string_view key);

 private:
  using Rules = std::shared_ptr<const std::vector<PolicyRule>>;
  struct Subject {
    std::string kind, name;  // as in the binding, for reasons
    std::string key;         // "u:name" or "g:name"
  };
  struct Binding {
    std::string ns, name, role_kind, role_name;
    std::vector<Subject> subjects;
  };
  using BindingPtr = std::shared_ptr<const Binding>;

  void PutBinding(std::string ns, std::string name, const rbacv1::RoleRef& role,
                  const google::protobuf::RepeatedPtrField<rbacv1::Subject>& subjects);
  void DropBinding(const std::string& key) KEELSON_REQUIRES(mutex_);
  // Bindings of the user in `ns` (may be empty) and cluster-wide, each with the matching subject.
  struct Match {
    BindingPtr binding;
    const Subject* subject;
    Rules rules;  // null: the role is missing
  };
  std::vector<Match> Matches(const User& user, std::string_view ns) const;

  mutable Mutex mutex_;
  std::unordered_map<std::string, Rules> roles_ KEELSON_GUARDED_BY(mutex_);
  std::unordered_map<std::string, BindingPtr> bindings_ KEELSON_GUARDED_BY(mutex_);
  // namespace + '\n' + subject key -> bindings; empty namespace: cluster-wide.
  std::unordered_map<std::string, std::map<std::string, BindingPtr>> by_subject_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
