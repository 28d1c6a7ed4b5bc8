// RBAC escalation checks: writing a role needs all permissions in it, or `escalate`; writing a binding needs
// all permissions of its role, or `bind`.
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "controlplane/apiserver/authz/rule_coverage.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using Rules = std::vector<PolicyRule>;
constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

template <typename Role>
Rules RulesIn(const api::Message& role) {
  Rules out;
  for (const rbacv1::PolicyRule& rule : static_cast<const Role&>(role).rules()) out.push_back(ToRule(rule));
  return out;
}

class RbacEscalation : public AdmissionPlugin {
 public:
  RbacEscalation(std::shared_ptr<const Authorizer> authorizer, storage::Store& store)
      : authorizer_(std::move(authorizer)), store_(store) {}
  std::string_view name() const override { return "RBACEscalation"; }

  Result<> Validate(const AdmissionRequest& request) override {
    bool writes = request.operation == registry::Operation::kCreate ||
                  request.operation == registry::Operation::kUpdate;
    if (!writes || request.info.group != kGroup || request.user.InGroup(kGroupMasters)) return {};
    if (request.Is(kGroup, "clusterroles")) {
      const auto& role = static_cast<const rbacv1::ClusterRole&>(*request.object);
      KEELSON_RETURN_IF_ERROR(CheckRules(request, RulesIn<rbacv1::ClusterRole>(role), "escalate",
                                         "clusterroles", api::Meta(role).name()));
      bool had = request.old_object &&
                 static_cast<const rbacv1::ClusterRole&>(*request.old_object).has_aggregation_rule();
      if (!role.has_aggregation_rule() && !had) return {};
      // Aggregated rules are unknown here, so an aggregationRule needs all permissions.
      const Rules everything = {{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
      if (CheckRules(request, everything, "escalate", "clusterroles", api::Meta(role).name())) return {};
      return NotAdmitted(request, "must have cluster-admin privileges to use an aggregationRule");
    }
    if (request.Is(kGroup, "roles")) {
      return CheckRules(request, RulesIn<rbacv1::Role>(*request.object), "escalate", "roles",
                        api::Meta(*request.object).name());
    }
    if (request.Is(kGroup, "clusterrolebindings")) {
      return CheckRole(request, static_cast<const rbacv1::ClusterRoleBinding&>(*request.object).role_ref());
    }
    if (request.Is(kGroup, "rolebindings")) {
      return CheckRole(request, static_cast<const rbacv1::RoleBinding&>(*request.object).role_ref());
    }
    return {};
  }

 private:
  Result<> CheckRole(const AdmissionRequest& request, const rbacv1::RoleRef& reference) {
    bool cluster = reference.kind() == "ClusterRole";
    const api::ResourceInfo& info =
        cluster ? api::ResourceOf<rbacv1::ClusterRole>() : api::ResourceOf<rbacv1::Role>();
    storage::ObjectPtr role =
        store_.Peek(info, cluster ? reference.name() : api::KeyOf(request.ns, reference.name()));
    if (Allowed(request, "bind", info.resource, reference.name())) return {};
    if (!role) return registry::NotFoundError(info, reference.name());
    auto object = role->Decode();
    return CheckRules(request,
                      cluster ? RulesIn<rbacv1::ClusterRole>(*object) : RulesIn<rbacv1::Role>(*object),
                      "bind", info.resource, reference.name());
  }

  Result<> CheckRules(const AdmissionRequest& request, const Rules& rules, std::string_view verb,
                      std::string_view resource, std::string_view role) {
    UserRules have = authorizer_->RulesFor(request.user, request.ns);
    std::vector<PolicyRule> missing = Uncovered(have.rules, rules);
    if (missing.empty() || Allowed(request, verb, resource, role)) return {};
    std::set<std::string> shown;
    for (const PolicyRule& rule : Compact(missing)) shown.insert(Describe(rule));
    std::string why =
        fmt::format("user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
                    k8s::Quote(request.user.name), QuotedList(request.user.groups), fmt::join(shown, "\n"));
    if (!have.error.empty()) why += fmt::format("; resolution errors: [{}]", have.error);
    return NotAdmitted(request, why);
  }

  bool Allowed(const AdmissionRequest& request, std::string_view verb, std::string_view resource,
               std::string_view name) const {
    RequestInfo info;
    info.is_resource = true;
    info.verb = verb;
    info.group = kGroup;
    info.version = "v1";
    info.ns = request.ns;
    info.resource = resource;
    info.name = name;
    return authorizer_->Authorize({request.user, info}).allowed;
  }

  const std::shared_ptr<const Authorizer> authorizer_;
  storage::Store& store_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewRbacEscalation(std::shared_ptr<const Authorizer> authorizer,
                                                   storage::Store& store) {
  return std::make_unique<RbacEscalation>(std::move(authorizer), store);
}

}  // namespace keelson::apiserver
