// Every verb on every resource, as each identity that a cluster has from its first minute, against
// testdata/bootstrap_answers.txt. What the file says is what upstream's policy allows: a difference is either
// a fault or a change of policy, which the file has to be changed for by hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/node.h"
#include "controlplane/apiserver/authz/policy_tables.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "controlplane/apiserver/authz/testing/attributes.h"
#include "lib/api/scheme.h"
#include "lib/base/file.h"
#include "lib/k8s/aggregate_rules.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kVerbs[] = {"get",    "list",  "watch",  "create",
                                  "update", "patch", "delete", "deletecollection"};
// Verbs that mean something on one resource only.
struct Special {
  const char *verb, *group, *resource, *name;
};
constexpr Special kSpecial[] = {
    {"impersonate", "", "users", ""},
    {"impersonate", "", "groups", ""},
    {"impersonate", "", "serviceaccounts", ""},
    {"impersonate", "authentication.k8s.io", "uids", ""},
    {"escalate", "rbac.authorization.k8s.io", "roles", ""},
    {"escalate", "rbac.authorization.k8s.io", "clusterroles", ""},
    {"bind", "rbac.authorization.k8s.io", "roles", ""},
    {"bind", "rbac.authorization.k8s.io", "clusterroles", ""},
    {"approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"},
    {"approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"},
    {"sign", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"},
    {"sign", "certificates.k8s.io", "signers", "example.com/other"},
    {"proxy", "", "nodes", ""},
};
constexpr const char* kPaths[] = {"/",
                                  "/api",
                                  "/apis/apps/v1",
                                  "/healthz",
                                  "/livez",
                                  "/logs",
                                  "/metrics",
                                  "/openapi/v3",
                                  "/readyz",
                                  "/readyz/etcd",
                                  "/version",
                                  "/.well-known/openid-configuration",
                                  "/openid/v1/jwks"};

struct Identity {
  std::string title;
  User user;
};

std::vector<Identity> Identities() {
  auto user = [](std::string name, std::vector<std::string> groups) {
    groups.emplace_back(kGroupAuthenticated);
    return User{std::move(name), "", std::move(groups), {}};
  };
  auto account = [&](std::string_view ns, std::string_view name) {
    return user(fmt::format("system:serviceaccount:{}:{}", ns, name),
                {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns)});
  };
  std::vector<Identity> out = {
      {"anonymous", AnonymousUser()},
      {"authenticated", user("jane", {})},
      {"service account", account("a", "default")},
      {"system:masters", user("root", {"system:masters"})},
      {"view of a", user("viewer", {})},
      {"edit of a", user("editor", {})},
      {"admin of a", user("administrator", {})},
      {"system:monitoring", user("prometheus", {"system:monitoring"})},
      {"system:node:n1", user("system:node:n1", {"system:nodes"})},
      {"system:kube-proxy", user("system:kube-proxy", {})},
      {"system:kube-scheduler", user("system:kube-scheduler", {})},
      {"system:kube-controller-manager", user("system:kube-controller-manager", {})},
      {"kube-system:kube-dns", account("kube-system", "kube-dns")},
      {"kube-system:bootstrap-signer", account("kube-system", "bootstrap-signer")},
      {"kube-system:token-cleaner", account("kube-system", "token-cleaner")},
  };
  for (const RoleRow& row : ControllerRoles()) {
    if (!row.gates.empty()) continue;
    out.push_back({fmt::format("kube-system:{}", row.name), account("kube-system", row.name)});
  }
  return out;
}

std::shared_ptr<RbacAuthorizer> Policy() {
  k8s::ClusterRoles all;
  for (const auto& role : BootstrapClusterRoles(NoGate)) {
    all[role.metadata().name()] = std::make_shared<rbacv1::ClusterRole>(role);
  }
  for (int round = 0; round < 3; ++round) {  // admin takes edit in, which takes view in
    for (auto& entry : all) {
      if (!entry.second->has_aggregation_rule()) continue;
      rbacv1::ClusterRole filled = *entry.second;
      *filled.mutable_rules() = k8s::AggregateRules(filled, all);
      entry.second = std::make_shared<rbacv1::ClusterRole>(filled);
    }
  }
  auto rbac = std::make_shared<RbacAuthorizer>();
  for (const auto& entry : all) rbac->Put(*entry.second);
  for (const auto& binding : BootstrapClusterRoleBindings(NoGate)) rbac->Put(binding);
  for (const auto& role : BootstrapRoles()) rbac->Put(role);
  for (const auto& binding : BootstrapRoleBindings()) rbac->Put(binding);
  for (const auto& [name, role] :
       {std::pair("viewer", "view"), std::pair("editor", "edit"), std::pair("administrator", "admin")}) {
    rbacv1::RoleBinding binding;
    binding.mutable_metadata()->set_namespace_("a");
    binding.mutable_metadata()->set_name(role);
    binding.mutable_role_ref()->set_kind("ClusterRole");
    binding.mutable_role_ref()->set_name(role);
    binding.add_subjects()->set_kind("User");
    binding.mutable_subjects(0)->set_name(name);
    rbac->Put(binding);
  }
  return rbac;
}

class Answers {
 public:
  // One identity's answers: a line for each set of verbs, with the resources that it may be done to, in all
  // namespaces or only where the line says so.
  std::string Of(const User& user) const {
    std::map<std::string, std::set<std::string>> lines;  // "verbs" or "verbs in NS" -> resources
    for (const api::ResourceInfo& row : api::Resources()) {
      std::set<std::string_view> everywhere;
      for (const char* ns : {"", "a", "kube-system", "kube-public"}) {
        if (*ns && !row.namespaced) continue;
        std::string verbs;
        for (const char* verb : kVerbs) {
          // What holds everywhere is said once.
          if (everywhere.count(verb) || !Allowed(user, Question(verb, row, ns))) continue;
          if (!*ns) everywhere.insert(verb);
          verbs += (verbs.empty() ? "" : ",") + std::string(verb);
        }
        if (verbs.empty()) continue;
        std::string name =
            row.group.empty() ? std::string(row.resource) : fmt::format("{}.{}", row.resource, row.group);
        lines[*ns ? fmt::format("{} in {}", verbs, ns) : verbs].insert(name);
      }
    }
    for (const Special& one : kSpecial) {
      for (const char* ns : {"", "a"}) {
        RequestInfo request = Resource(one.verb, one.group, one.resource, ns, one.name);
        if (!Allowed(user, request)) continue;
        std::string shown = *one.name ? fmt::format("{}/{}", one.resource, one.name) : one.resource;
        lines[*ns ? fmt::format("{} in {}", one.verb, ns) : one.verb].insert(shown);
        break;
      }
    }
    for (const char* path : kPaths) {
      if (Allowed(user, Path("get", path))) lines["paths"].insert(path);
    }
    std::string out;
    for (const auto& line : lines) out += fmt::format("{}: {}\n", line.first, fmt::join(line.second, " "));
    return out;
  }

 private:
  static RequestInfo Question(const char* verb, const api::ResourceInfo& row, const char* ns) {
    bool named = std::string_view(verb) != "list" && std::string_view(verb) != "watch" &&
                 std::string_view(verb) != "create" && std::string_view(verb) != "deletecollection";
    return Resource(verb, std::string(row.group), std::string(row.resource), ns, named ? "x" : "");
  }
  bool Allowed(const User& user, const RequestInfo& request) const {
    return authorizer_.Authorize({user, request}).allowed;
  }

  const UnionAuthorizer authorizer_{{std::make_shared<MastersAuthorizer>(),
                                     std::make_shared<NodeAuthorizer>(std::make_shared<NodeGraph>(), NoGate),
                                     Policy()}};
};

TEST(BootstrapAnswers, AreAsTheTableSays) {
  const std::string file = std::string(KEELSON_TESTDATA) + "/bootstrap_answers.txt";
  std::string actual;
  Answers answers;
  for (const Identity& identity : Identities()) {
    actual +=
        fmt::format("{}== {}\n{}", actual.empty() ? "" : "\n", identity.title, answers.Of(identity.user));
  }
  // On a policy change: writes the new expected file.
  if (const char* out = std::getenv("KEELSON_WRITE_ANSWERS")) {
    ASSERT_TRUE(WriteFile(out, actual));
  }
  Result<std::string> expected = ReadFile(file);
  ASSERT_TRUE(expected) << expected.error().message();
  EXPECT_TRUE(actual == *expected) << "answers differ from " << file
                                   << "; KEELSON_WRITE_ANSWERS=FILE writes what they are";
}

}  // namespace
}  // namespace keelson::apiserver
