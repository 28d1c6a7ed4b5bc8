// Nobody gives away rights that he does not have: roles may hold only rules that their writer has, bindings
// may refer only to roles whose rules their writer has, unless RBAC grants `escalate` or `bind`.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

using Rules = std::vector<PolicyRule>;
constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// Every single right that a rule grants must be granted by some rule of `have`.
bool Covers(const Rules& have, const PolicyRule& wanted) {
  auto granted = [&](const RequestInfo& request) {
    return std::any_of(have.begin(), have.end(),
                       [&](const PolicyRule& rule) { return Allows(rule, request); });
  };
  RequestInfo request;
  for (const std::string& verb : wanted.verbs) {
    request.verb = verb;
    request.is_resource = false;
    for (const std::string& url : wanted.urls) {
      request.path = url;
      if (!granted(request)) return false;
    }
    request.is_resource = true;
    for (const std::string& group : wanted.groups) {
      request.group = group;
      for (const std::string& resource : wanted.resources) {
        auto slash = resource.find('/');
        request.resource = resource.substr(0, slash);
        request.subresource = slash == std::string::npos ? "" : resource.substr(slash + 1);
        std::vector<std::string> names = wanted.names.empty() ? std::vector<std::string>{""} : wanted.names;
        for (const std::string& name : names) {
          request.name = name;
          if (!granted(request)) return false;
        }
      }
    }
  }
  return true;
}

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
      // What aggregation will bring in is beyond anybody's check but an owner's of everything.
      Rules rules = role.has_aggregation_rule()
                        ? Rules{{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}}
                        : RulesIn<rbacv1::ClusterRole>(role);
      return CheckRules(request, rules, "escalate", "clusterroles", api::Meta(role).name());
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
    Rules have = authorizer_->RulesFor(request.user, request.ns);
    bool covered =
        std::all_of(rules.begin(), rules.end(), [&](const PolicyRule& rule) { return Covers(have, rule); });
    if (covered || Allowed(request, verb, resource, role)) return {};
    return NotAdmitted(request,
                       fmt::format("user \"{}\" is attempting to grant RBAC permissions not currently held",
                                   request.user.name));
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
