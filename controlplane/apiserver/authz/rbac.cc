#include "controlplane/apiserver/authz/rbac.h"

#include <fmt/format.h>

#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

template <typename Repeated>
std::vector<std::string> Strings(const Repeated& repeated) {
  return {repeated.begin(), repeated.end()};
}

template <typename Repeated>
std::shared_ptr<const std::vector<PolicyRule>> ToRules(const Repeated& repeated) {
  auto rules = std::make_shared<std::vector<PolicyRule>>();
  for (const auto& rule : repeated) rules->push_back(ToRule(rule));
  return rules;
}

std::string SubjectIndexKey(std::string_view ns, std::string_view subject) {
  std::string key(ns);
  (key += '\n') += subject;
  return key;
}

}  // namespace

PolicyRule ToRule(const rbacv1::PolicyRule& rule) {
  return {Strings(rule.verbs()), Strings(rule.api_groups()), Strings(rule.resources()),
          Strings(rule.resource_names()), Strings(rule.non_resource_urls())};
}

void RbacAuthorizer::Put(const rbacv1::ClusterRole& role) {
  Rules rules = ToRules(role.rules());
  MutexLock lock(mutex_);
  roles_[role.metadata().name()] = std::move(rules);
}

void RbacAuthorizer::Put(const rbacv1::Role& role) {
  Rules rules = ToRules(role.rules());
  MutexLock lock(mutex_);
  roles_[api::KeyOf(role)] = std::move(rules);
}

void RbacAuthorizer::Put(const rbacv1::ClusterRoleBinding& binding) {
  PutBinding("", binding.metadata().name(), binding.role_ref(), binding.subjects());
}

void RbacAuthorizer::Put(const rbacv1::RoleBinding& binding) {
  PutBinding(binding.metadata().namespace_(), binding.metadata().name(), binding.role_ref(),
             binding.subjects());
}

void RbacAuthorizer::PutBinding(std::string ns, std::string name, const rbacv1::RoleRef& role,
                                const google::protobuf::RepeatedPtrField<rbacv1::Subject>& subjects) {
  auto made =
      std::make_shared<Binding>(Binding{std::move(ns), std::move(name), role.kind(), role.name(), {}});
  for (const rbacv1::Subject& subject : subjects) {
    std::string key;
    std::string shown = subject.name();
    if (subject.kind() == "User") {
      key = "u:" + subject.name();
    } else if (subject.kind() == "Group") {
      key = "g:" + subject.name();
    } else if (subject.kind() == "ServiceAccount") {
      const std::string& account_ns = subject.namespace_().empty() ? made->ns : subject.namespace_();
      key = fmt::format("u:{}{}:{}", kUserServiceAccountPrefix, account_ns, subject.name());
      shown = subject.name() + "/" + account_ns;
    } else {
      continue;
    }
    made->subjects.push_back({subject.kind(), std::move(shown), std::move(key)});
  }
  std::string key = api::KeyOf(made->ns, made->name);
  MutexLock lock(mutex_);
  DropBinding(key);
  for (const Subject& subject : made->subjects) {
    by_subject_[SubjectIndexKey(made->ns, subject.key)][key] = made;
  }
  bindings_[key] = std::move(made);
}

void RbacAuthorizer::DropBinding(const std::string& key) {
  auto it = bindings_.find(key);
  if (it == bindings_.end()) return;
  for (const Subject& subject : it->second->subjects) {
    auto entry = by_subject_.find(SubjectIndexKey(it->second->ns, subject.key));
    if (entry == by_subject_.end()) continue;
    entry->second.erase(key);
    if (entry->second.empty()) by_subject_.erase(entry);
  }
  bindings_.erase(it);
}

void RbacAuthorizer::RemoveRole(std::string_view key) {
  MutexLock lock(mutex_);
  roles_.erase(std::string(key));
}

void RbacAuthorizer::RemoveBinding(std::string_view key) {
  MutexLock lock(mutex_);
  DropBinding(std::string(key));
}

std::shared_ptr<const std::vector<PolicyRule>> RbacAuthorizer::RulesOf(std::string_view ns,
                                                                       std::string_view role) const {
  MutexLock lock(mutex_);
  auto it = roles_.find(api::KeyOf(ns, role));
  return it == roles_.end() ? nullptr : it->second;
}

std::vector<RbacAuthorizer::Match> RbacAuthorizer::Matches(const User& user, std::string_view ns) const {
  std::vector<std::string> subjects = {"u:" + user.name};
  for (const std::string& group : user.groups) subjects.push_back("g:" + group);
  std::vector<Match> out;
  MutexLock lock(mutex_);
  auto add = [&](std::string_view where) KEELSON_REQUIRES(mutex_) {
    for (const std::string& subject : subjects) {
      auto found = by_subject_.find(SubjectIndexKey(where, subject));
      if (found == by_subject_.end()) continue;
      for (const auto& entry : found->second) {
        const Binding& binding = *entry.second;
        const Subject* matched = nullptr;
        for (const Subject& one : binding.subjects) {
          if (one.key == subject) matched = &one;
        }
        auto role = roles_.find(binding.role_kind == "Role" ? api::KeyOf(binding.ns, binding.role_name)
                                                            : binding.role_name);
        out.push_back({entry.second, matched, role == roles_.end() ? nullptr : role->second});
      }
    }
  };
  add("");
  if (!ns.empty()) add(ns);
  return out;
}

namespace {

std::string MissingRole(std::string_view kind, std::string_view name) {
  return fmt::format("{}.rbac.authorization.k8s.io \"{}\" not found", kind == "Role" ? "role" : "clusterrole",
                     name);
}

}  // namespace

Decision RbacAuthorizer::Authorize(const Attributes& attributes) const {
  std::vector<std::string> errors;
  for (const Match& match :
       Matches(attributes.user, attributes.request.is_resource ? attributes.request.ns : "")) {
    const Binding& binding = *match.binding;
    if (!match.rules) {
      errors.push_back(MissingRole(binding.role_kind, binding.role_name));
      continue;
    }
    for (const PolicyRule& rule : *match.rules) {
      if (!Allows(rule, attributes.request)) continue;
      std::string where = binding.ns.empty() ? fmt::format("ClusterRoleBinding \"{}\"", binding.name)
                                             : fmt::format("RoleBinding \"{}/{}\"", binding.name, binding.ns);
      return {true,
              fmt::format("RBAC: allowed by {} of {} \"{}\" to {} \"{}\"", where, binding.role_kind,
                          binding.role_name, match.subject->kind, match.subject->name),
              ""};
    }
  }
  if (errors.empty()) return {};
  std::string error = Aggregate(errors);
  return {false, "RBAC: " + error, error};
}

UserRules RbacAuthorizer::RulesFor(const User& user, std::string_view ns) const {
  UserRules out;
  std::vector<std::string> errors;
  for (const Match& match : Matches(user, ns)) {
    if (match.rules) {
      out.rules.insert(out.rules.end(), match.rules->begin(), match.rules->end());
    } else {
      errors.push_back(MissingRole(match.binding->role_kind, match.binding->role_name));
    }
  }
  out.error = Aggregate(errors);
  out.incomplete = !errors.empty();
  return out;
}

}  // namespace keelson::apiserver
